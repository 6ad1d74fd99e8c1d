"""Runs in a Slurm job: grades one submission and writes its record to a file for the submitting machine."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.verdict import Verdict
from grader.classes.batch.work import BuildTask, GradeTask
from grader.classes.cluster.job_files import RunFiles
from grader.grading.session import open_grading
from grader.programs.engine import select_engine

BEAT_S = 5.0
"""The time between a job's heartbeats."""


ENDING = (signal.SIGTERM, signal.SIGUSR2)
"""The signals that every process of a job gets before Slurm kills it, even the submission's program: SIGTERM when the
job is cancelled, preempted or out of time, SIGUSR2 some time before that (submitit asks for it)."""
SETTLE_S = 1.0
"""A test may fail because the signal reached its program first. Then this process gets the signal within this time."""


class Ended(BaseException):
    """Slurm ends this job. Not an Exception, so that no handler mistakes it for a fault of the submission."""


def grade_one(folder: str, task: int, attempt: int) -> str:
    """Grade order `task` of the run in `folder`, for the `attempt`th time. Faults are written to a file and not raised:
    for Slurm, a job that reports a fault has succeeded. If Slurm ends the job, it raises Ended and writes no record,
    since a test may have failed only because of the signal."""
    files = RunFiles(Path(folder))
    stop = threading.Event()
    threading.Thread(target=_live, args=(files.beat(task, attempt), stop), daemon=True).start()
    for number in ENDING:
        signal.signal(number, _end)
    try:
        order = files.read_order(task)
        engine = select_engine(order.engine, order.setup.assignment.build.emulator_target)
        with open_grading(replace(order.setup, engine=engine)) as grading:
            built = BuildTask(order.submission)(grading)
            record = GradeTask(order.submission, built, frozenset(case.name for case in grading.cases))(grading)
        if any(test.verdict is not Verdict.PASSED for test in record.tests):
            time.sleep(SETTLE_S)
        files.write_result(task, record)
        return "graded"
    except (MachineFault, GraderFault, UsageError) as fault:
        files.write_fault(task, str(fault))
        return str(fault)
    finally:
        stop.set()


def _end(number: int, frame: FrameType | None) -> None:
    raise Ended(f"Slurm ends this job ({signal.Signals(number).name}).")


def _live(beat: Path, stop: threading.Event) -> None:
    while True:
        beat.touch()
        if stop.wait(BEAT_S):
            return
