"""The board as everybody sees it, kept ready: ranks come from `report.leaderboard`, over lines that are computed again
only for students with a new record. One thread does that at most every two seconds, however many verdicts there are."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from grader.base.errors import UsageError
from grader.classes.batch.policy import Which
from grader.classes.final_points import Line, gradebook, students_only
from grader.course.assignment import Assignment, FailedTests
from grader.judge.ledger import Ledger
from grader.judge.store_thread import StoreThread
from grader.report.leaderboard import Board, Names, leaderboard

_AT_MOST_EVERY_S = 2.0


@dataclass(frozen=True)
class Shown:
    """A board ready to send: None where nothing is ranked yet. `etag` changes with its content."""

    board: Board | None
    etag: str
    why_empty: str = ""


class Standings(threading.Thread):
    """Keeps `shown` and `lines` up to date until `stop`. `published` is called after every change."""

    def __init__(self, books: StoreThread, rules: Assignment, which: Which, published: Callable[[], None]) -> None:
        super().__init__(name="standings", daemon=True)
        self._books, self._rules, self._which, self._published = books, rules, which, published
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
        self._refresh(self._books.call(lambda ledger: ledger.store.students()))
        while not self._ending:
            self._bell.wait()
            self._bell.clear()
            with self._lock:
                students, self._changed = self._changed, set()
            if students:
                self._refresh(students)
                threading.Event().wait(_AT_MOST_EVERY_S)

    def _refresh(self, students: Iterable[str]) -> None:
        lines = dict(self.lines)
        for student in students:
            for line in self._books.call(_lines, self._rules.name, self._which, student):
                lines[student] = line
        self.lines = dict(sorted(lines.items()))
        self.shown = _board(list(self.lines.values()), self._rules)
        self._published()


def _lines(ledger: Ledger, assignment: str, which: Which, student: str) -> list[Line]:
    return gradebook(ledger.store, assignment, which, student)


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
