"""A student's history, in pages: the result of each upload, and a work log for the course."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.base.csv_table import csv_text
from grader.judge.answers import Status, status_of
from grader.judge.ledger import PAGE, Ledger, Upload
from grader.judge.office import Judge, own
from grader.judge.problems import Problem
from grader.judge.results import Result
from grader.judge.tokens import Person
from grader.report.explain import explain

_COLUMNS = (
    "submission", "received", "state", "passed", "tests", "first problem", "largest error", "GPU ms", "speedup",
    "occupancy", "files",
)  # fmt: skip
_AT_ONCE_S = 0.02
"""How long one call of the store's thread reads results. Records of a megabyte take 10 ms each."""


@dataclass(frozen=True)
class Entry:
    """An upload and its result (None if it has none yet)."""

    upload: Upload
    result: Result | None


@dataclass(frozen=True)
class Page:
    """Some of a student's uploads, newest first; `older` is the one that follows them, if any."""

    entries: Sequence[Entry]
    older: Upload | None


async def page_of(judge: Judge, who: Person, student: str, before: str = "", most: int = PAGE) -> Page:
    """A student's latest uploads, or those before the one with the id `before`. Uploads of the same files share their
    result. Raises Problem."""

    def uploads_of(ledger: Ledger) -> list[Upload]:
        return ledger.of_student(student, own(ledger, before, who).number if before else None, most + 1)

    uploads, entries = await judge.read(who, uploads_of), list[Entry]()
    while len(entries) < len(uploads[:most]):
        entries += await judge.read(who, _some, uploads[len(entries) : most])
    return Page(entries, uploads[most] if len(uploads) > most else None)


def _some(ledger: Ledger, uploads: Sequence[Upload]) -> list[Entry]:
    """The entries of the first ones of `uploads`, at least one: others use the store between two calls."""
    found, until = list[Entry](), time.monotonic() + _AT_ONCE_S
    for upload in uploads:
        found.append(Entry(upload, ledger.results.of(upload.submission, upload.record)))
        if time.monotonic() > until:
            break
    return found


def statuses(ledger: Ledger, judge: Judge, page: Page) -> list[Status]:
    """The statuses of a page's uploads."""
    return [status_of(judge, ledger, entry.upload) for entry in page.entries]


async def explained(judge: Judge, who: Person, student: str, before: str) -> tuple[Page, str]:
    """A page of a student's uploads, and a text that traces every number of its latest result back to its inputs (''
    without a result). Raises Problem 404 for a student without uploads."""
    page = await page_of(judge, who, student, before)
    if not page.entries:
        raise Problem(404, "There are no submissions of this student: check the id.")
    latest = next((entry.upload.submission for entry in page.entries if entry.result), None)
    if latest is None:
        return page, ""
    record = await judge.read(who, lambda ledger: ledger.store.record_that_counts(latest))
    return page, explain(record) if record else ""


async def work_log(judge: Judge, who: Person) -> str:
    """A CSV file with a line for each upload of `who`, oldest first. Raises Problem."""
    rows, before = list[Sequence[object]](), ""
    while True:
        page = await page_of(judge, who, who.submits_as, before)
        rows += map(_row, page.entries)
        if page.older is None:
            return await asyncio.to_thread(csv_text, [_COLUMNS, *reversed(rows)])
        before = page.entries[-1].upload.id


def _row(entry: Entry) -> Sequence[object]:
    upload, result = entry.upload, entry.result
    received = datetime.fromtimestamp(upload.received, UTC).isoformat(timespec="seconds")
    shown: tuple[object, ...] = ("",) * (len(_COLUMNS) - 3)
    if result is not None:
        numbers = (result.max_error, result.gpu_ms, result.speedup, result.occupancy)
        measured = ("" if number is None else number for number in numbers)
        shown = (result.passed, len(result.tests), result.problem, *measured, result.files)
    return upload.id, received, str(upload.state), *shown
