"""The interface of an executor, which does one task at a time, somewhere else than in the process that asks for it."""

from __future__ import annotations

from typing import Protocol

from grader.base.errors import MachineFault
from grader.grading.session import Grading
from grader.records.record import Record


class Task(Protocol):
    """A step of grading: a function that is sent to another process, which sends the result back."""

    def __call__(self, grading: Grading) -> object: ...


class Died(MachineFault):
    """A worker process or a job ended in the middle of its work."""


class Executor(Protocol):
    """A place for one task at a time. A new executor has a result already: an Exception if it could not be opened."""

    @property
    def where(self) -> str:
        """The place of the latest task, for people."""

    @property
    def poll_s(self) -> float:
        """How long to wait before asking whether the task is done; endless if `fileno` says when."""

    def submit(self, task: Task) -> None:
        """Start on `task`."""

    def control(self) -> None:
        """Start on the control: its result is the reason why even the grader's own program does not run here, or ''."""

    def fileno(self) -> int | None:
        """A descriptor that is readable once there is a result, if there is one."""

    def done(self) -> bool:
        """Whether there is a result, or a Report that comes before it. Raises MachineFault if that cannot be known."""

    def result(self) -> object:
        """The result of the task, or the fault that prevented it: Died if the place is lost. A task that reports its
        progress (`grader.base.remote.report`) has each Report as a result first."""

    def cancel(self) -> None:
        """Ask for an end of the task now, without waiting; its result is Died, and no task may follow."""

    def kill(self) -> None:
        """End the task without asking."""

    def close(self) -> None:
        """Wait, for a limited time, until nothing runs here."""


def record_of(answer: object) -> Record | None:
    """The record in the result of a task."""
    return answer if isinstance(answer, Record) else getattr(answer, "record", None)


def fault_of(answer: object) -> str:
    """The fault of the grader or the machine in the result of a task; '' if there is none."""
    if isinstance(answer, Exception):
        return str(answer)
    record = record_of(answer)
    return record.first_fault if record is not None else ""
