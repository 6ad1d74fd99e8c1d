"""A student's own history: what each attempt gave, what changed between two, and the work log that courses ask for."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.base.csv_table import csv_text
from grader.base.names import spelled_out
from grader.base.verdict import Verdict
from grader.judge.ledger import Ledger, Upload
from grader.records import measured_times
from grader.records.record import Record
from grader.records.score import geometric_mean
from grader.sandbox.bounded import Bounded, Exceeded

_differ = Bounded(wall_s=20, memory_bytes=1 << 30)
_MOST_BYTES = 400_000
_MOST_LINES = 4000
_COLUMNS = (
    "submission", "received", "state", "passed", "tests", "first problem", "largest error", "GPU ms", "speedup",
    "occupancy", "files",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """One upload with its record; None where it was not graded, or not yet."""

    upload: Upload
    record: Record | None

    @property
    def passed(self) -> int:
        return sum(test.verdict is Verdict.PASSED for test in self.record.tests) if self.record else 0

    @property
    def problem(self) -> str:
        """What is wrong first, in a line."""
        if self.record is None:
            return ""
        return next((test.reason for test in self.record.tests if test.verdict is not Verdict.PASSED), "")

    @property
    def speedup(self) -> float | None:
        speedups = (
            [value.value for test in self.record.tests if (value := measured_times.speedup(test))]
            if self.record
            else []
        )
        return geometric_mean(speedups) if speedups else None

    @property
    def gpu_ms(self) -> float | None:
        times = [test.gpu_ms for test in self.record.tests if test.gpu_ms is not None] if self.record else []
        return sum(times) if times else None


def entries_of(ledger: Ledger, student: str) -> list[Entry]:
    """A student's uploads, newest first. Uploads of the same files share their record."""
    records: dict[int, Record | None] = {}
    found = []
    for upload in ledger.of_student(student):
        if upload.submission is not None and upload.submission not in records:
            records[upload.submission] = ledger.store.record_that_counts(upload.submission)
        found.append(Entry(upload, records.get(upload.submission) if upload.submission is not None else None))
    return found


def work_log(entries: Sequence[Entry]) -> str:
    """A CSV file with a line for each upload, oldest first."""
    rows: list[Sequence[object]] = [_COLUMNS]
    for entry in reversed(entries):
        record, upload = entry.record, entry.upload
        errors = [test.max_error for test in record.tests if test.max_error is not None] if record else []
        rows.append((
            upload.id, datetime.fromtimestamp(upload.received, UTC).isoformat(timespec="seconds"), str(upload.state),
            entry.passed if record else "", len(record.tests) if record else "", entry.problem,
            max(errors, default=""), entry.gpu_ms or "", entry.speedup or "",
            (record.occupancy or "") if record else "", record.submission.sha256[:12] if record else "",
        ))  # fmt: skip
    return csv_text(rows)


def changes(before: Sequence[tuple[str, bytes]], after: Sequence[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """The lines of a unified diff, each with its kind: file, where, add, remove or same. It is computed under limits,
    since sources can be made for which it takes hours."""
    if sum(len(content) for _, content in (*before, *after)) > _MOST_BYTES:
        return [("where", "The files are too large to compare here.")]
    try:
        return _differ.call(_changes, tuple(before), tuple(after))
    except Exceeded as exceeded:
        return [("where", f"The difference {exceeded}.")]


_KINDS = {"+++": "file", "---": "file", "@@ ": "where"}


def _changes(before: tuple[tuple[str, bytes], ...], after: tuple[tuple[str, bytes], ...]) -> list[tuple[str, str]]:
    old, new = dict(before), dict(after)
    lines: list[tuple[str, str]] = []
    for name in sorted(old.keys() | new.keys()):
        was, now = (spelled_out(side.get(name, b"").decode(errors="replace")).splitlines() for side in (old, new))
        for line in difflib.unified_diff(was, now, f"{name}, before", f"{name}, after", lineterm=""):
            kind = _KINDS.get(line[:3]) or {"+": "add", "-": "remove"}.get(line[:1], "same")
            lines.append((kind, line))
    return lines[:_MOST_LINES]
