"""The values that a store reads and writes: students, attempts, points, and states of attempts."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import PurePosixPath

from grader.base.verdict import Verdict
from grader.records.record import Record

Files = tuple[tuple[str, bytes], ...]
"""The names and contents of files."""
MAX_FILES, MAX_FILES_BYTES = 10_000, 128 << 20
"""Limits on the files of one submission."""
Compressed = tuple[tuple[str, bytes], ...]
"""The same with compressed contents, as the store keeps them."""


def compressed(files: Sequence[tuple[str, bytes]]) -> Compressed:
    """Compress files for the store."""
    return tuple((name, zlib.compress(content)) for name, content in files)


def decompressed(files: Compressed) -> Files:
    """The files as they were before `compressed`. Raises zlib.error, also for files that no submission may have: a
    store can come from elsewhere, and 64 MB unpack to 64 GB."""
    found, left = list[tuple[str, bytes]](), MAX_FILES_BYTES
    if len(files) > MAX_FILES:
        raise zlib.error("it has too many files")
    for name, content in files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\0" in name:
            raise zlib.error("a name in it leads out of the submission")
        unpacking = zlib.decompressobj()
        found.append((name, unpacking.decompress(content, left + 1)))
        left -= len(found[-1][1])
        if left < 0 or not unpacking.eof:
            raise zlib.error("it is too large" if left < 0 else "it is incomplete")
    return tuple(found)


class State(StrEnum):
    """The state of an attempt under some conditions (rules, testcases, engine)."""

    FAULTED = "faulted"
    FAILED = "failed"
    PASSED = "passed"

    @property
    def judged(self) -> bool:
        """Whether there is a record without a fault of the grader or the machine."""
        return self in (State.FAILED, State.PASSED)


@dataclass(frozen=True)
class Kept:
    """A stored record, its row, and the conditions under which it was made."""

    row: int
    conditions: str
    record: Record

    @property
    def state(self) -> State:
        if self.record.infrastructure_failed:
            return State.FAULTED
        passed = all(test.verdict is Verdict.PASSED for test in self.record.tests)
        return State.PASSED if passed else State.FAILED


@dataclass(frozen=True)
class HandIn:
    """An attempt before grading. The store keeps its files for pages and reruns: `files`, or `compressed` if they are
    compressed already."""

    assignment: str
    student: str
    sha256: str
    path: str
    handed_in: datetime | None = None
    days_late: int = 0
    penalty: float = 0.0
    files: Files = ()
    compressed: Compressed = ()


PAGE_NAME = re.compile(r"[\w-]+", re.ASCII)
"""The name of a student's page. It becomes part of an address and of a path on disk."""


@dataclass(frozen=True)
class Student:
    """A student as stored. `page` is the unguessable name of the student's page; `enrolled` means on a roster."""

    id: str
    name: str
    nickname: str
    section: str
    page: str
    email: str = ""
    enrolled: bool = False


@dataclass(frozen=True)
class Points:
    """The points that an assistant entered for one part."""

    student: str
    part: str
    points: float
    comment: str


@dataclass(frozen=True)
class Attempt:
    """An attempt with the record that counts for it. Records on the graded testcases come before practice records, and
    records without a fault of the grader or the machine before those with one; of equals, the newest counts. The
    attempt is number `number` of the student's `of` graded attempts, in the order in which they were handed in."""

    submission: int
    student: Student
    number: int
    sha256: str
    handed_in: datetime | None
    days_late: int
    penalty: float
    record_id: int
    record: Record
    of: int = 1
