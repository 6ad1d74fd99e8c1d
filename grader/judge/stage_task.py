"""One stage of one submission, done by a worker process: read the files, build, run, check. The process reports each
test to the judge over a datagram socket, for pages to show. A report may get lost; the record has every test."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.progress import Progress
from grader.base.verdict import Fault
from grader.classes.batch.view import View
from grader.classes.batch.work import ReadTask, failed_build
from grader.classes.cluster.single import grade_alone
from grader.grading.pipeline import Grading, grade_built
from grader.judge.ledger import Files
from grader.programs.build import build_to_grade
from grader.programs.submission import Submission
from grader.records.record import Record
from grader.sandbox.scratch import scratch_folder

_FOLDER = "upload"


@dataclass(frozen=True)
class Judged:
    """The result of a stage: the submission as read, and its record (None if these files were judged before)."""

    submission: Submission
    record: Record | None


@dataclass(frozen=True)
class StageTask:
    """A task for a worker process: grade the `files` of `student`, and report progress to the socket at `address`."""

    upload: str
    student: str
    files: Files
    address: str
    judged_before: frozenset[str] = frozenset()
    """The SHA-256 of each of this student's submissions that was judged under these conditions already."""

    def __call__(self, grading: Grading) -> Judged:
        with laid_out(self.files) as folder, _reporting(self.upload, self.address) as progress:
            progress.stage("reading")
            reading = ReadTask(self.student, folder)(grading)
            submission = replace(reading.submission, path=Path(_named(self.files)))
            if submission.sha256 in self.judged_before:
                return Judged(submission, None)
            if reading.problem:
                built = failed_build(Fault.STUDENT, reading.problem.replace(str(folder), "The upload"))
                return Judged(submission, grade_built(grading, submission, built, progress))
            return Judged(submission, self.grade(grading, submission, progress))

    def grade(self, grading: Grading, submission: Submission, progress: Progress) -> Record:
        """Build and grade the submission."""
        progress.stage("compiling")
        built = build_to_grade(submission, grading.assignment, grading.engine, grading.cases)
        return grade_built(grading, submission, built, progress)


@dataclass(frozen=True)
class SlurmStageTask(StageTask):
    """A stage that a Slurm job does; the worker process only reads the files and waits for the job."""

    folder: str = ""
    """The folder through which this lane and its jobs exchange files; it has the same path on all nodes."""

    def grade(self, grading: Grading, submission: Submission, progress: Progress) -> Record:
        progress.stage("waiting for a node of the cluster")
        return grade_alone(grading, submission, Path(self.folder), _Lost(progress))


class _Lost(View):
    """Shows the student when a job is lost and submitted again."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def say(self, text: str) -> None:
        self._progress.stage("a node was lost; waiting for another")


@contextlib.contextmanager
def laid_out(files: Files) -> Iterator[Path]:
    """Write the files into a temporary folder that exists while the block runs."""
    with scratch_folder("judge") as scratch:
        folder = scratch / _FOLDER
        for name, content in files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        yield folder


def _named(files: Files) -> str:
    return files[0][0] if len(files) == 1 else _FOLDER


class _Reports(Progress):
    """Sends what a student's page shows: the current step, and each test when it ends."""

    def __init__(self, upload: str, to: socket.socket) -> None:
        self._upload, self._to = upload, to

    def stage(self, text: str, total: int | None = None) -> None:
        self._send({"stage": text.rpartition(": ")[2], "total": total})

    def step(self, name: str, ended: str = "") -> None:
        if ended:
            self._send({"test": name, "ended": ended})

    def _send(self, content: dict[str, object]) -> None:
        with contextlib.suppress(OSError):  # nobody reads, or the buffer is full
            self._to.send(json.dumps({"upload": self._upload, **content}).encode())


@contextlib.contextmanager
def _reporting(upload: str, address: str) -> Iterator[Progress]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.setblocking(False)
        with contextlib.suppress(OSError):
            to.connect(address)
        yield _Reports(upload, to)
