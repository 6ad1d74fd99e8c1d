"""Tasks in worker processes on this machine.

They are processes, not threads, for two reasons. First, the sandbox kills every orphan that its process inherits, and
that must not be a process of another submission. Second, if a worker is killed or runs out of memory, only one
submission loses a try. Workers have their own sessions, so Ctrl-C reaches only the coordinator, which ends them with
SIGTERM; each worker then kills what it runs. If the coordinator itself is killed, the kernel sends the workers the same
signal (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import math
import os
import signal
import sys
from dataclasses import dataclass

from grader.base.errors import GraderFault, MachineFault
from grader.base.remote import Lost, Remote
from grader.base.unwinding import never_drop_a_signal
from grader.classes.executors.executor import Died, Task
from grader.grading.session import Grading, open_grading
from grader.grading.setup import Setup
from grader.programs import control

_PATIENCE_S = 10.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Opened:
    """The first task of every worker. Its answer, the engine's name, shows that the engine is open."""

    def __call__(self, grading: Grading) -> str:
        return grading.engine.name


@dataclass(frozen=True)
class Control:
    """A task that asks whether the grader's own program can be built and run."""

    def __call__(self, grading: Grading) -> str:
        return control.problem(grading.engine)


class LocalExecutor(Remote):
    """An Executor: one worker process with an open engine. The kernel ends it when the thread that created it ends."""

    poll_s = math.inf

    def __init__(self, name: str, setup: Setup, control: Task = Control()) -> None:
        super().__init__(own_session=True)
        self.where, self._setup, self._control = name, setup, control
        self.submit(Opened())

    def submit(self, task: Task) -> None:
        self.begin(_do, task, self._setup, os.getpid())

    def control(self) -> None:
        self.submit(self._control)

    def result(self) -> object:
        try:
            return self.answer()
        except Lost as lost:
            return Died(
                f"The grader's worker {self.where} ended in the middle of its work ({lost}): it was killed, or the "
                "machine ran out of memory."
            )

    def close(self, patience_s: float = _PATIENCE_S) -> None:
        super().close(patience_s)


# ---- in a worker's process --------------------------------------------------------------------------------------

_opened: list[Grading] = []
"""The `Grading` of this process: the first task opens it, and later tasks use it, too."""


def _do(task: Task, setup: Setup, parent: int) -> object:
    try:
        if not _opened:
            _opened.append(_open(setup, parent))
        return task(_opened[0])
    except (MachineFault, GraderFault) as fault:
        return fault.__class__(str(fault))
    except Exception as error:
        return GraderFault(f"{type(error).__name__}: {error}; this is a bug of the grader.")


def _open(setup: Setup, parent: int) -> Grading:
    never_drop_a_signal()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds the stack, which kills the run in progress
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # the coordinator has ended already
        sys.exit(143)
    open_until_the_end = contextlib.ExitStack()
    atexit.register(open_until_the_end.close)
    return open_until_the_end.enter_context(open_grading(setup))
