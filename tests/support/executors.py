"""Executors for tests: they do each task at once, in this process."""

import math

from grader.classes.executors.executor import Died, Task
from grader.classes.executors.local import Control
from grader.grading.session import Grading, open_grading
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


class Here(InThisProcess):
    """An executor that grades in this process, where a worker process needs a second to start."""

    def __init__(self, name: str, setup: Setup) -> None:
        super().__init__(name, setup)
        self._opened = open_grading(setup)
        self.grading = self._opened.__enter__()

    def control(self) -> None:
        self.submit(Control())

    def close(self) -> None:
        self._opened.__exit__(None, None, None)
