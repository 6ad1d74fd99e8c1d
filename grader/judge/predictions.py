"""Predicted GPU times of submissions that passed their samples. They are never grades: no record has them, so they earn
no points and stand on no board.

The emulator's lanes aside predict while no submission waits for a verdict or gets one, the newest submission first; a
submission that comes ends a prediction, which is made again later. With a GPU, a prediction is there before the
submission was timed. A restart forgets which predictions were due.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import TypeAdapter

from grader.classes.attention import Concern, Why
from grader.classes.final_points import Line, students_only
from grader.judge.ledger import PREDICTED, Ledger, Upload
from grader.judge.results import Result

_FAR = 2.0
"""How many times off its interval a measured time is a hint for the staff."""


@dataclass(frozen=True)
class Prediction:
    """The predicted GPU time of `test` on a `gpu`; `words` has it as sentences."""

    test: str
    gpu: str
    words: str
    low_ms: float
    high_ms: float


@dataclass(frozen=True)
class DueTime:
    """A prediction that a lane makes."""

    upload: Upload


_FORM = TypeAdapter(Prediction)


def keep(ledger: Ledger, upload: Upload, found: Prediction) -> None:
    """Store a prediction with the upload."""
    with ledger.store.transaction():
        values = (upload.number, PREDICTED, found.test, _FORM.dump_json(found).decode())
        ledger.store.execute("INSERT OR REPLACE INTO judge_tests VALUES (?, ?, ?, ?)", values)


def predictions(ledger: Ledger, submission: int | None = None) -> dict[int, Prediction]:
    """The predictions of all attempts, or of one, by number in the store."""
    query = (
        "SELECT submission, judge_tests.record FROM judge_tests JOIN judge_uploads ON upload = number "
        "WHERE conditions = ? AND submission = coalesce(?, submission)"
    )
    rows = ledger.store.execute(query, (PREDICTED, submission))
    return {number: _FORM.validate_json(text) for number, text in rows}


def measured(found: Prediction, result: Result) -> tuple[str, bool]:
    """The measured time of the predicted test in words, '' if there is none; and whether it is so far from the
    predicted one, on the same GPU, that the staff should look at the submission."""
    ms = next((test["gpu_ms"] for test in result.tests if test["name"] == found.test), None)
    if ms is None:
        return "", False
    far = found.gpu in result.device and not found.low_ms / _FAR <= ms <= found.high_ms * _FAR
    return f"{found.test} takes {_ms(ms)}, measured on {result.device}", far


def _ms(ms: float) -> str:
    return f"{ms:,.0f} ms" if ms >= 100 else f"{ms:.3g} ms"


def shown(ledger: Ledger, upload: Upload) -> tuple[str, ...]:
    """What an upload's page says: the prediction and, next to it, the measured time. Empty without a prediction."""
    found = predictions(ledger, upload.submission).get(upload.submission or 0)
    result = ledger.results.of(upload.submission, upload.record)
    return () if found is None or result is None else (found.words, measured(found, result)[0])


def far_off(ledger: Ledger, lines: Sequence[Line]) -> list[Concern]:
    """The students whose measured time is far from the predicted one."""
    known, found = predictions(ledger), []
    for attempt in (line.attempt for line in students_only(lines)):
        result = ledger.results.of(attempt.submission, attempt.record_id)
        if (made := known.get(attempt.submission)) is not None and result is not None:
            words, far = measured(made, result)
            if far:
                predicted = f"predicted were {_ms(made.low_ms)} to {_ms(made.high_ms)}"
                found.append(Concern(attempt.student, Why.FAR_FROM_PREDICTED, f"{words}; {predicted}"))
    return found
