"""Decides which attempts of a class a run grades, and which it grades again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.base.errors import UsageError
from grader.base.names import student_id
from grader.classes.batch.class_folder import Found
from grader.course.assignment import assignment_names, load_assignment
from grader.store import State


class Which(StrEnum):
    """Which of a student's attempts counts."""

    LATEST = "latest"
    BEST = "best"

    @staticmethod
    def chosen(assignment: str, best: bool | None) -> Which:
        """What --best or --latest chooses, or else the assignment; the latest if this course no longer has it."""
        if best is not None:
            return Which.BEST if best else Which.LATEST
        known = assignment in assignment_names()
        return Which(load_assignment(assignment).submission.counts) if known else Which.LATEST


_WORDS = {
    "failed": {State.FAULTED, State.FAILED},
    "machine-faults": {State.FAULTED},
    "older": set[State](),
    "all": {State.FAULTED, State.FAILED, State.PASSED},
}


@dataclass(frozen=True)
class Policy:
    """`rerun` is None, `failed`, `machine-faults`, `older`, `all`, or student ids separated by commas."""

    which: Which = Which.LATEST
    rerun: str | None = None

    def __post_init__(self) -> None:
        if self._ids() == set():
            raise UsageError(f"--rerun {self.rerun!r} names no student: give {', '.join(_WORDS)}, or ids.")

    def chosen(self, found: Sequence[Found]) -> list[Found]:
        """The submissions to consider: with LATEST, each student's newest; when students are named, only theirs."""
        ids = self._ids()
        entries = [one for one in found if ids is None or one.student in ids]
        if self.which is Which.BEST:
            return entries
        newest: dict[str, Found] = {}
        for one in entries:
            if one.student not in newest or one.handed_in >= newest[one.student].handed_in:
                newest[one.student] = one
        return [one for one in entries if newest[one.student] is one]

    def unknown(self, found: Sequence[Found]) -> set[str]:
        """Students named in `rerun` who have no submission."""
        return (self._ids() or set()) - {one.student for one in found}

    def wants(self, state: State, *, older: bool = False) -> bool:
        """Whether this run grades an attempt in `state`; `older` if another grader graded it. An attempt that was never
        judged is always graded."""
        if not state.judged or self._ids() is not None or (older and self.rerun == "older"):
            return True
        return self.rerun is not None and state in _WORDS[self.rerun]

    def _ids(self) -> set[str] | None:
        if self.rerun is None or self.rerun in _WORDS:
            return None
        return {student_id(word) for word in self.rerun.split(",") if word.strip()}
