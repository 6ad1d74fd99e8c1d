"""The files through which the submitting machine and the jobs communicate. `RunFiles` knows every file's name.

A run's folder is on a file system that all nodes share. Every file is written under another name and then renamed, so
that it appears completely or not at all.
"""

from __future__ import annotations

import pickle
import time
from dataclasses import dataclass
from pathlib import Path

from grader.base.paths import replacing
from grader.grading.setup import Setup
from grader.programs.submission import Submission
from grader.records.record import Record


@dataclass(frozen=True)
class Order:
    """A job's input: a submission, and the class's setup, in which the job replaces the engine with one on its own
    node."""

    setup: Setup
    engine: str
    submission: Submission


@dataclass(frozen=True)
class RunFiles:
    """The files of one run, in one folder. Tasks are numbered; each try of a task has its own heartbeat file."""

    folder: Path

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def jobs(self) -> Path:
        """The ids of the submitted arrays, one per line."""
        return self.folder / "jobs"

    def order(self, task: int) -> Path:
        return self.folder / f"order-{task}.pickle"

    def result(self, task: int) -> Path:
        return self.folder / f"result-{task}.json"

    def fault(self, task: int) -> Path:
        return self.folder / f"fault-{task}.txt"

    def beat(self, task: int, attempt: int) -> Path:
        return self.folder / f"beat-{task}-{attempt}"

    def write_order(self, task: int, order: Order) -> None:
        _write(self.order(task), pickle.dumps(order))

    def read_order(self, task: int) -> Order:
        order = pickle.loads(self.order(task).read_bytes())
        assert isinstance(order, Order)
        return order

    def write_result(self, task: int, record: Record) -> None:
        _write(self.result(task), record.model_dump_json(by_alias=True).encode())

    def read_result(self, task: int) -> Record | None:
        """The record that a job has written; None if there is none yet."""
        try:
            return Record.model_validate_json(self.result(task).read_bytes())
        except FileNotFoundError:
            return None

    def write_fault(self, task: int, text: str) -> None:
        _write(self.fault(task), text.encode())

    def take_fault(self, task: int) -> str | None:
        """Return the fault that a job reported, and remove its file."""
        try:
            text = self.fault(task).read_text()
        except FileNotFoundError:
            return None
        self.fault(task).unlink(missing_ok=True)
        return text

    def silent_s(self, task: int, attempt: int) -> float | None:
        """Seconds since a job's last heartbeat, from the file's mtime; None before the first one."""
        try:
            return time.time() - self.beat(task, attempt).stat().st_mtime
        except FileNotFoundError:
            return None

    def note_job(self, job: str) -> None:
        with self.jobs.open("a") as file:
            file.write(f"{job}\n")

    def noted_jobs(self) -> list[str]:
        return self.jobs.read_text().split() if self.jobs.exists() else []


def _write(path: Path, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)
