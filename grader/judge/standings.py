"""The board as everybody sees it, kept ready: ranks come from `report.leaderboard`, over lines that are computed again
only for students with a new record. One thread does that at most once a second, however many verdicts there are."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from grader.base.errors import UsageError
from grader.classes.batch.policy import Which
from grader.classes.final_points import Line, gradebook, students_only
from grader.course.assignment import Assignment, FailedTests
from grader.report.leaderboard import Board, Names, leaderboard
from grader.store import Store, open_store

_AT_MOST_EVERY_S = 1.0


@dataclass(frozen=True)
class Shown:
    """A board ready to send: None where nothing is ranked yet. `etag` changes with its content."""

    board: Board | None
    etag: str
    why_empty: str = ""


class Standings(threading.Thread):
    """Keeps `shown` and `lines` up to date until `stop`. `published` is called after every change."""

    def __init__(self, store: Path, rules: Assignment, which: Which, published: Callable[[], None]) -> None:
        super().__init__(name="standings", daemon=True)
        self._path, self._rules, self._which, self._published = store, rules, which, published
        self._changed: set[str] = set()
        self._bell, self._lock = threading.Event(), threading.Lock()
        self._ending = False
        self.shown = Shown(None, "none")
        self.lines: dict[str, Line] = {}

    def touch(self, student: str) -> None:
        """A student has a new record."""
        with self._lock:
            self._changed.add(student)
        self._bell.set()

    def stop(self) -> None:
        self._ending = True
        self._bell.set()

    def run(self) -> None:
        with open_store(self._path) as store:
            self._refresh(store, None)
            while not self._ending:
                self._bell.wait()
                self._bell.clear()
                with self._lock:
                    students, self._changed = self._changed, set()
                if students:
                    self._refresh(store, students)
                    threading.Event().wait(_AT_MOST_EVERY_S)

    def _refresh(self, store: Store, students: set[str] | None) -> None:
        lines = dict(self.lines)
        for student in students or [None]:
            for line in gradebook(store, self._rules.name, self._which, student):
                lines[line.attempt.student.id] = line
        self.lines = dict(sorted(lines.items()))
        self.shown = _board(list(self.lines.values()), self._rules)
        self._published()


def _board(lines: list[Line], rules: Assignment) -> Shown:
    """By speedup; where nothing was timed, by the points for correct results."""
    correctness = next((part.part for part in rules.rubric if isinstance(part, FailedTests)), None)
    why = "Nobody has a result yet."
    for metric in ("speedup", correctness):
        if metric is None or not students_only(lines):
            continue
        try:
            board = leaderboard(lines, metric=metric, names=Names.NICKNAME)
        except UsageError as error:
            why = str(error)
            continue
        return Shown(board, hashlib.sha256(repr(board).encode()).hexdigest()[:16])
    return Shown(None, "none", why)
