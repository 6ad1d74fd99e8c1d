"""One stage of one submission, done by a worker process: unpack and read the files, build, run, check. The process
reports each test, for pages to show, on the connection that it inherited from the judge (`grader.base.remote`)."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import ConfigDict

from grader.base.progress import Progress
from grader.base.remote import report
from grader.base.verdict import Fault
from grader.classes.batch.work import ReadTask
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.programs.build import build, failed_build
from grader.records.record import Record, TestRecord
from grader.sandbox.scratch import scratch_folder
from grader.store import Compressed, compressed

_FOLDER = "upload"
_LONGEST_WORDS = 200


@dataclass(frozen=True)
class Judged:
    """The result of a stage: the digest, path and files of the submission as read, and its record (None if these files
    were judged before)."""

    sha256: str
    path: str
    files: Compressed
    record: Record | None
    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    """A job of a cluster answers in JSON."""


@dataclass(frozen=True)
class StageTask:
    """A task for a worker process: grade the `files` of `student`, and report progress."""

    student: str
    files: Compressed
    judged_before: frozenset[str] = frozenset()
    """The SHA-256 of each of this student's submissions that was judged under these conditions already."""
    ended: tuple[TestRecord, ...] = ()
    """The tests that an interrupted run of this stage has ended: they are not run again."""

    def __call__(self, grading: Grading) -> Judged:
        progress = _Reports()
        progress.stage("reading")
        with laid_out(self.files) as folder:
            reading = ReadTask(self.student, folder)(grading)
            submission = replace(reading.submission, path=Path(_named(self.files)))
            judged = Judged(submission.sha256, str(submission.path), compressed(submission.files), None)
            if submission.sha256 in self.judged_before:
                return judged
            if reading.problem:
                built = failed_build(Fault.STUDENT, reading.problem.replace(str(folder), "The upload"))
                return replace(judged, record=grade(grading, submission, progress, built))
            progress.stage("compiling")
            grading = replace(grading, ended=self.ended, keep=lambda test: report(EndedTest(test)))
            built = build(submission, grading.assignment, grading.engine, grading.cases)
            return replace(judged, record=grade(grading, submission, progress, built))


@contextlib.contextmanager
def laid_out(files: Compressed) -> Iterator[Path]:
    """Unpack the files into a temporary folder that exists while the block runs."""
    with scratch_folder("judge") as scratch:
        folder = scratch / _FOLDER
        for name, content in files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(zlib.decompress(content))
        yield folder


def _named(files: Compressed) -> str:
    return files[0][0] if len(files) == 1 else _FOLDER


@dataclass(frozen=True)
class Stepped:
    """The step that a submission has reached, in words, and the number of tests that it will run."""

    stage: str
    total: int | None


@dataclass(frozen=True)
class EndedTest:
    """A test that need not run again if this run is interrupted."""

    test: TestRecord


@dataclass(frozen=True)
class Ended:
    """The result of a test in a few words."""

    test: str
    words: str


class _Reports(Progress):
    """Reports what a student's page shows: the current step, and each test when it ends."""

    def stage(self, text: str, total: int | None = None) -> None:
        report(Stepped(text.rpartition(": ")[2][:_LONGEST_WORDS], total))

    def step(self, name: str, ended: str = "") -> None:
        if ended:
            report(Ended(name, ended[:_LONGEST_WORDS]))
