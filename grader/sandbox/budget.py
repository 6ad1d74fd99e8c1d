"""The limit of one step of a submission, such as its build: all commands and all calls in the room draw from it.

Processor time counts, because on a loaded machine wall time accuses honest programs. The wall time is a far limit, for
commands that wait instead of computing. What runs at the same time may each take all that is left, so that a step takes
at most its limit times the number of its threads.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar

from cudaemu.process import Stopped

WALL_PER_CPU = 8


class Budget:
    """`what` names the step in the message of Stopped: "Compiling". `kept_bytes`: what it may keep, if that counts."""

    def __init__(self, cpu_s: float, what: str, kept_bytes: int = 0) -> None:
        self._cpu_s, self._what, self._kept_bytes = cpu_s, what, kept_bytes
        self.spent_s, self._kept = 0.0, 0
        self._wall_s = WALL_PER_CPU * cpu_s
        self._until = time.monotonic() + self._wall_s
        self._lock = threading.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether no processor time is left: the same step would end there again, on any machine."""
        return self.spent_s >= self._cpu_s

    @property
    def problem(self) -> str:
        """A sentence on the limit that is reached; '' if none is."""
        if self.is_spent:
            return f"{self._what} took more than {self._cpu_s:g} s of processor time."
        return f"{self._what} took more than {self._wall_s:g} s." if time.monotonic() >= self._until else ""

    def left_s(self) -> tuple[float, float]:
        """The seconds of processor time and of wall time that are left. Raises Stopped if one of them is over."""
        if problem := self.problem:
            raise Stopped(problem)
        return self._cpu_s - self.spent_s, max(0.0, self._until - time.monotonic())

    def spend(self, cpu_s: float) -> None:
        """Count processor time."""
        with self._lock:
            self.spent_s += cpu_s

    def keep(self, size: int) -> None:
        """Count bytes that are kept. Raises Stopped if they are too many."""
        with self._lock:
            self._kept += size
            if self._kept > self._kept_bytes:
                raise Stopped(f"{self._what} left more than {self._kept_bytes >> 20} MiB.")


_current: ContextVar[Budget | None] = ContextVar("budget", default=None)


def current() -> Budget | None:
    """The budget that this thread's calls in the room draw from."""
    return _current.get()


def draw_from(budget: Budget | None) -> None:
    """Let this thread's calls draw from a budget: another thread's."""
    _current.set(budget)


@contextlib.contextmanager
def drawing(budget: Budget) -> Iterator[Budget]:
    """Let all calls in the block, and in threads that `draw_from` it, draw from a budget."""
    before = _current.set(budget)
    try:
        yield budget
    finally:
        _current.reset(before)
