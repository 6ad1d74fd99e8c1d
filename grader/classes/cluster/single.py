"""Grades one submission on Slurm and waits for the result; a lane of the live judge does this. Each lane has its own
folder. Files in it at the start were left by a process that was killed; its jobs are cancelled first."""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from grader.base.errors import MachineFault
from grader.classes.batch.view import View
from grader.classes.cluster.job_files import RunFiles
from grader.classes.cluster.job_states import cancel
from grader.classes.cluster.slurm import SlurmRun, SlurmTask
from grader.course.assignment import Cluster
from grader.grading.session import Grading
from grader.programs.submission import Submission
from grader.records.record import Record


@dataclass(eq=False)
class _OneRecord:
    """Keeps the record of a run with one submission in memory."""

    view: View
    record: Record | None = None

    def keep(self, number: int, record: Record) -> Record:
        """Only the record that is passed to `finish` counts."""
        return record

    def finish(self, student: str, record: Record, where: str, seconds: float) -> None:
        self.record = record


def grade_alone(grading: Grading, submission: Submission, folder: Path, view: View) -> Record:
    """Grade a submission in a Slurm job, and return its record. Lost jobs are submitted again, and `view` is notified.
    Raises MachineFault if Slurm, or the folder that all nodes share, cannot be used."""
    try:
        for left in folder.glob("*/"):
            cancel(RunFiles(left).noted_jobs())
            shutil.rmtree(left)
        files = RunFiles(folder / f"{time.time_ns()}")
        files.logs.mkdir(parents=True)
    except OSError as error:
        raise MachineFault(f"The cluster's folder {folder} cannot be used: {error.strerror}.") from error
    books = _OneRecord(view)
    run = SlurmRun(books, grading.assignment.cluster or Cluster(), files, grading)
    run.add(SlurmTask(0, submission.id, submission, 0, grading.cases))
    try:
        run.submit(list(run.tasks.values()))
        run.wait()
    except BaseException:
        with suppress(Exception):
            cancel(files.noted_jobs())
        raise
    finally:
        shutil.rmtree(files.folder, ignore_errors=True)
    assert books.record is not None
    return books.record
