"""Runs in a Slurm job: does one task and writes its result to a file for the submitting machine."""

from __future__ import annotations

import signal
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import FrameType

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.verdict import Verdict
from grader.classes.executors.executor import Task, record_of
from grader.classes.executors.job_files import RunFiles
from grader.grading.session import open_grading
from grader.grading.setup import Setup
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


def do_task(folder: str, number: int, setup: Setup, task: Task) -> str:
    """Do the task of job `number` of the run in `folder`, with an engine of this node. Faults are written to a file and
    not raised: for Slurm, a job that reports a fault has succeeded. If Slurm ends the job, it raises Ended and writes
    no result, since a test may have failed only because of the signal."""
    files = RunFiles(Path(folder))
    stop = threading.Event()
    threading.Thread(target=_live, args=(files.beat(number), stop), daemon=True).start()
    for each in ENDING:
        signal.signal(each, _end)
    try:
        engine = select_engine(setup.engine.name, setup.assignment.build.emulator_target)
        with open_grading(replace(setup, engine=engine)) as grading:
            answer = task(grading)
        record = record_of(answer)
        if record is not None and any(test.verdict is not Verdict.PASSED for test in record.tests):
            time.sleep(SETTLE_S)
        files.write_result(number, answer)
        return "done"
    except (MachineFault, GraderFault, UsageError) as fault:
        files.write_fault(number, str(fault))
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
