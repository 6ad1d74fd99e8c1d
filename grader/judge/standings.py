"""Keeps the public board up to date. Ranks come from `report.leaderboard`; only students with a new record get a new
line of the gradebook. One thread updates the board at most every two seconds, however many verdicts there are."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.classes.batch.policy import Which
from grader.classes.final_points import Line, gradebook, students_only
from grader.course.assignment import Assignment
from grader.judge.ledger import Ledger
from grader.judge.prepared import Prepared, prepared
from grader.judge.rechecks import Due, next_due
from grader.judge.store_thread import StoreThread
from grader.report.leaderboard import Board, default_board, render

log = logging.getLogger(__name__)
_AT_MOST_EVERY_S = 2.0
_AT_LEAST_EVERY_S = 20.0
"""The board is updated at least this often, even without notice, since other commands can change the store, too."""


@dataclass(frozen=True)
class Shown:
    """A board ready to send; `board` is None if nothing is ranked yet."""

    board: Board | None
    as_html: Prepared
    as_json: Prepared


class Standings(threading.Thread):
    """Keeps `shown` and `lines` up to date until `stop`. `draw` renders HTML from a board, or from the sentence that
    says why there is none; `published` is called after every change."""

    def __init__(
        self,
        books: StoreThread,
        rules: Assignment,
        which: Which,
        draw: Callable[[Board | None, str], str],
        published: Callable[[], None],
    ) -> None:
        super().__init__(name="standings", daemon=True)
        self._books, self._rules, self._which = books, rules, which
        self._draw, self._published = draw, published
        self._bell, self._ending = threading.Event(), False
        self._seen = (0, 0)
        self.lines: dict[str, Line] = {}
        self.shown = self._shown()

    def look(self) -> None:
        """Look for new records now."""
        self._bell.set()

    def next_due(self, tried: Container[object]) -> Due | None:
        """The result to recheck next."""
        return next_due(self.shown.board, self.lines, tried)

    def stop(self) -> None:
        """End after the current step."""
        self._ending = True
        self._bell.set()

    def run(self) -> None:
        while not self._ending:
            try:
                students, seen = self._books.call(_graded_since, self._rules.name, self._seen)
                if students:
                    self._refresh(students)
                    self._seen = seen
                    threading.Event().wait(_AT_MOST_EVERY_S)
            except (MachineFault, UsageError, GraderFault) as fault:
                log.warning("The board stays as it is: %s", fault)
            self._bell.wait(_AT_LEAST_EVERY_S)
            self._bell.clear()

    def _refresh(self, students: Iterable[str]) -> None:
        lines = dict(self.lines)
        for student in students:
            found = self._books.call(lambda it, of: gradebook(it.store, self._rules.name, self._which, of), student)
            for line in found:
                lines[student] = line
        self.lines = dict(sorted(lines.items()))
        before, self.shown = self.shown, self._shown()
        if self.shown.as_json.etag != before.as_json.etag:
            self._published()

    def _shown(self) -> Shown:
        board, why_empty = _board(list(self.lines.values()))
        as_json = "null" if board is None else render(board, "json")
        html = prepared(self._draw(board, why_empty), "text/html; charset=utf-8")
        return Shown(board, html, prepared(as_json, "application/json"))


def _graded_since(ledger: Ledger, assignment: str, seen: tuple[int, int]) -> tuple[list[str], tuple[int, int]]:
    """The students whose lines may have changed since `seen`, and the new `seen`: the number of the newest record, and
    SQLite's data_version, which changes when another process writes. After such a write, for example of a nickname or
    of points entered by hand, these are all graded students."""
    newest, others = seen
    (version,) = ledger.store.execute("PRAGMA data_version").fetchone()
    query = (
        "SELECT student, max(records.id) FROM records JOIN submissions ON submissions.id = submission "
        "WHERE assignment = ? AND records.id > ? GROUP BY student"
    )
    rows = ledger.store.execute(query, (assignment, newest if version == others else 0)).fetchall()
    return [row[0] for row in rows], (max((row[1] for row in rows), default=newest), version)


def _board(lines: list[Line]) -> tuple[Board | None, str]:
    """Return (board, ''), or (None, the reason why there is no board). The board ranks by speedup or, if nothing was
    timed, by the points for correct results."""
    if not students_only(lines):
        return None, "Nobody has a result yet."
    try:
        return default_board(lines)[0], ""
    except UsageError as error:
        return None, str(error)
