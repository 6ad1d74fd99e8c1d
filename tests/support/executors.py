"""An executor for tests: it does each task at once, in this process."""

from __future__ import annotations

import math

from grader.classes.executors.executor import Died, Task
from grader.grading.session import Grading
from grader.grading.setup import Setup


class InThisProcess:
    """A task that returns None never ends. `broken` is what the control says."""

    where = "here"

    def __init__(self, name: str, setup: Setup, broken: str = "") -> None:
        self.grading, self.broken = Grading(**vars(setup)), broken
        self.answer: object = "open"

    @property
    def poll_s(self) -> float:
        return 0.01 if self.answer is None else 0.0

    def submit(self, task: Task) -> None:
        try:
            self.answer = task(self.grading)
        except Exception as fault:
            self.answer = fault

    def control(self) -> None:
        self.answer = self.broken

    def fileno(self) -> None:
        return None

    def done(self) -> bool:
        return self.answer is not None

    def result(self) -> object:
        return self.answer

    def cancel(self) -> None:
        self.answer = self.answer or Died("It was cancelled.")

    def kill(self) -> None:
        raise AssertionError("nothing here has to be killed")

    def close(self) -> None:
        assert math.isfinite(self.poll_s)
