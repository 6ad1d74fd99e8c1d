"""What runs in a Slurm job: grade one submission and leave its record where the submitting machine looks for it."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from grader.batch.work import BuildTask, GradeTask
from grader.cluster.files import RunFiles
from grader.engine import select_engine
from grader.errors import GraderFault, MachineFault, UsageError

BEAT_S = 5.0
"""How often a job gives a sign of life."""


def grade_one(folder: str, task: int, attempt: int) -> str:
    """Grade order `task` of the run in `folder`, for the `attempt`th time. What cannot be done is written down, not
    raised: to Slurm a job that could say what is wrong has done its work."""
    files = RunFiles(Path(folder))
    stop = threading.Event()
    threading.Thread(target=_live, args=(files.beat(task, attempt), stop), daemon=True).start()
    try:
        order = files.read_order(task)
        engine = select_engine(order.engine, order.setup.assignment.build.emulator_target)
        setup = replace(order.setup, engine=engine)
        with setup.grading() as grading:
            built = BuildTask(order.submission)(setup, grading)
            files.write_result(task, GradeTask(order.submission, built)(setup, grading))
        return "graded"
    except (MachineFault, GraderFault, UsageError) as fault:
        files.write_fault(task, str(fault))
        return str(fault)
    finally:
        stop.set()


def _live(beat: Path, stop: threading.Event) -> None:
    while True:
        beat.touch()
        if stop.wait(BEAT_S):
            return
