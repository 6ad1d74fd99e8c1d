"""A student's history: the result of each upload, and a work log for the course."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.base.csv_table import csv_text
from grader.judge.ledger import Ledger, Upload
from grader.judge.problems import Problem
from grader.judge.results import Result
from grader.report.explain import explain

_COLUMNS = (
    "submission", "received", "state", "passed", "tests", "first problem", "largest error", "GPU ms", "speedup",
    "occupancy", "files",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """An upload and its result (None if it has none yet)."""

    upload: Upload
    result: Result | None


def entries_of(ledger: Ledger, student: str) -> list[Entry]:
    """A student's uploads, newest first. Uploads of the same files share their result."""
    return [Entry(upload, ledger.results.of(upload.submission)) for upload in ledger.of_student(student)]


def explained(ledger: Ledger, student: str) -> tuple[list[Entry], str]:
    """A student's uploads, newest first, and a text that traces every number of the latest result back to its inputs
    ('' without a result). Raises Problem 404 for a student without uploads."""
    entries = entries_of(ledger, student)
    if not entries:
        raise Problem(404, "There are no submissions of this student: check the id.")
    latest = next((entry.upload.submission for entry in entries if entry.result), None)
    record = ledger.store.record_that_counts(latest) if latest is not None else None
    return entries, explain(record) if record else ""


def work_log(entries: Sequence[Entry]) -> str:
    """A CSV file with a line for each upload, oldest first."""
    rows: list[Sequence[object]] = [_COLUMNS]
    for entry in reversed(entries):
        upload, result = entry.upload, entry.result
        received = datetime.fromtimestamp(upload.received, UTC).isoformat(timespec="seconds")
        shown: tuple[object, ...] = ("",) * (len(_COLUMNS) - 3)
        if result is not None:
            numbers = (result.max_error, result.gpu_ms, result.speedup, result.occupancy)
            measured = ("" if number is None else number for number in numbers)
            shown = (result.passed, len(result.tests), result.problem, *measured, result.files)
        rows.append((upload.id, received, str(upload.state), *shown))
    return csv_text(rows)
