"""The files through which jobs answer the submitting machine. `RunFiles` knows every file's name.

A run's folder is on a file system that all nodes share. Every file is written under another name and then renamed, so
that it appears completely or not at all. Results are JSON, which cannot do anything when it is read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter

from grader.base.paths import replacing
from grader.classes.executors.executor import Task


@dataclass(frozen=True)
class RunFiles:
    """The files of one run, in one folder. Every job has a number of its own."""

    folder: Path

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def jobs(self) -> Path:
        """The ids of the submitted arrays, one per line."""
        return self.folder / "jobs"

    def result(self, number: int) -> Path:
        return self.folder / f"result-{number}.json"

    def fault(self, number: int) -> Path:
        return self.folder / f"fault-{number}.txt"

    def beat(self, number: int) -> Path:
        return self.folder / f"beat-{number}"

    def write_result(self, number: int, result: Any) -> None:
        _write(self.result(number), TypeAdapter(type(result)).dump_json(result, by_alias=True))

    def read_result(self, number: int, task: Task) -> Any:
        """What a job has written, of the type that its task returns; None if there is nothing yet."""
        try:
            text = self.result(number).read_bytes()
        except FileNotFoundError:
            return None
        return TypeAdapter(get_type_hints(type(task).__call__)["return"]).validate_json(text)

    def write_fault(self, number: int, text: str) -> None:
        _write(self.fault(number), text.encode())

    def read_fault(self, number: int) -> str | None:
        """The fault that a job has reported, if any."""
        try:
            return self.fault(number).read_text()
        except FileNotFoundError:
            return None

    def silent_s(self, number: int) -> float | None:
        """Seconds since a job's last heartbeat, from the file's mtime; None before the first one."""
        try:
            return time.time() - self.beat(number).stat().st_mtime
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
