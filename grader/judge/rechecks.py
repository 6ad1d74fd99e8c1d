"""Rechecks while the queue is empty: lanes of the timing stage rerun the submissions that could get a place on the
board, best first (see `classes.recheck`). They stop as soon as a submission waits."""

from __future__ import annotations

import atexit
import contextlib
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from grader.base.progress import Progress
from grader.classes.final_points import Line
from grader.classes.recheck import Recheck, recheck, rests_on
from grader.classes.second_draw import SecondDraw, second_draw
from grader.grading.session import Grading
from grader.judge.ledger import Ledger
from grader.judge.stage_task import laid_out
from grader.records.record import RecheckRecord, Record
from grader.report.leaderboard import Board
from grader.store import Attempt, Compressed


@dataclass(frozen=True)
class Due:
    """A result that needs a recheck of `tests` before it gets a place."""

    attempt: Attempt
    tests: tuple[str, ...]

    @property
    def key(self) -> tuple[int, tuple[str, ...]]:
        """Identifies the recheck: the submission and the tests. (The record would not do: a recheck replaces it.)"""
        return self.attempt.submission, self.tests


def next_due(board: Board | None, lines: Mapping[str, Line], tried: Container[object]) -> Due | None:
    """The best result on the board that needs a recheck and whose key is not in `tried`; None if there is none."""
    if board is None:
        return None
    waiting = (row for row in board.rows if row.recheck is Recheck.MISSING and not row.mark and row.id in lines)
    attempts = (lines[row.id].attempt for row in waiting)
    due = (Due(attempt, rests_on(attempt.record, board.tests)) for attempt in attempts)
    return next((one for one in due if one.key not in tried), None)


def store_recheck(ledger: Ledger, attempt: Attempt, found: RecheckRecord) -> None:
    """Store a recheck, unless a newer record of the attempt counts by the time it is done."""
    for now in ledger.store.attempts(ledger.assignment, attempt.student.id, only=attempt.submission):
        if now.record_id == attempt.record_id:
            ledger.store.add_recheck(now, found)


@dataclass(frozen=True)
class RecheckTask:
    """A task for a worker process: recheck `tests` of a record."""

    record: Record
    files: Compressed
    tests: Sequence[str]

    def __call__(self, grading: Grading) -> RecheckRecord:
        if not _opened:
            until_the_end = contextlib.ExitStack()
            atexit.register(until_the_end.close)
            _opened.append(until_the_end.enter_context(second_draw(grading.assignment, grading.engine, Progress())))
        draw = _opened[0]
        with laid_out(self.files) as folder:
            return recheck(self.record, self.tests, draw.name, lambda names: draw.grade(folder, names))


_opened: list[SecondDraw] = []
"""The second draw that all rechecks of this worker share; empty before the first."""
