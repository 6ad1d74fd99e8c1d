"""Rechecks a class's candidates for a place on the leaderboard (see `grader.classes.recheck`), best first. All rechecks
share one draw, and each is stored as soon as it is done."""

from __future__ import annotations

from collections.abc import Sequence

from grader.base.errors import MachineFault, UsageError
from grader.classes.recheck import Recheck, recheck, rests_on
from grader.classes.second_draw import SecondDraw
from grader.commands.complaints import unpacked
from grader.report.leaderboard import Board
from grader.store import Attempt, Store


def recheck_leaders(store: Store, attempts: Sequence[Attempt], board: Board, top: int | None, draw: SecondDraw) -> None:
    """Recheck `attempts` in the order of `board`, until `top` students have a place or no attempt is left. An attempt
    that cannot be rechecked is skipped, with a line that says why. Raises UsageError if the engine here differs from
    the one that graded."""
    by_student = {attempt.student.id: attempt for attempt in attempts}
    waiting = sum(row.recheck is Recheck.MISSING for row in board.rows)
    placed = done = 0
    for row in board.rows:
        if row.mark or placed == (top or len(board.rows)):
            continue
        if row.recheck is not Recheck.MISSING:
            placed += 1
            continue
        done += 1
        draw.progress.stage(f"recheck {done} of {waiting}: {row.id}")
        placed += _recheck_one(store, by_student[row.id], board.tests, draw)


def _recheck_one(store: Store, attempt: Attempt, tests: Sequence[str], draw: SecondDraw) -> bool:
    """Recheck an attempt and store the result. Return whether it passed."""
    record, student = attempt.record, attempt.student.id
    if record.engine.name != (here := draw.setup.engine.name):
        raise UsageError(
            f"{student} was graded on {record.engine.name}, and this machine has {here}: recheck on a machine like "
            "the one that graded."
        )
    needed = rests_on(record, tests)
    try:
        with unpacked(store, attempt) as folder:
            found = recheck(record, needed, draw.name, lambda names: draw.grade(folder, names))
    except (MachineFault, UsageError) as problem:
        draw.progress.line(f"{student} could not be rechecked: {problem}")
        return False
    store.add_recheck(attempt, found)
    return found.passed
