"""Worker processes, each of which does one task at a time.

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
import os
import select
import signal
import sys
from collections.abc import Sequence

from grader.base.errors import GraderFault, MachineFault
from grader.base.remote import Lost, Remote
from grader.base.unwinding import never_drop_a_signal
from grader.classes.batch.work import Task
from grader.grading.session import Grading, open_grading
from grader.grading.setup import Setup

_PATIENCE_S = 10.0
_PR_SET_PDEATHSIG = 1


class Died(MachineFault):
    """A worker process ended in the middle of its work."""


class Worker:
    """One worker process. The kernel ends it when the thread that created it ends."""

    def __init__(self, name: str, setup: Setup) -> None:
        self.name, self.setup = name, setup
        self._process = Remote(own_session=True)

    def give(self, task: Task) -> None:
        """Start on `task`."""
        self._process.begin(_do, task, self.setup, os.getpid())

    def answer(self) -> object:
        """Return the result of the task, or the fault that prevented it: Died if the worker ended. A task that reports
        its progress (`grader.base.remote.report`) is answered by each Report first."""
        try:
            return self._process.answer()
        except Lost as lost:
            return Died(
                f"The grader's worker {self.name} ended in the middle of its work ({lost}): it was killed, or the "
                "machine ran out of memory."
            )

    def fileno(self) -> int:
        """The descriptor to wait on, for `select`: see `Remote`."""
        return self._process.fileno()

    def end(self) -> None:
        """Ask the worker to end now, without waiting; `join` waits."""
        self._process.terminate()

    def kill(self) -> None:
        """End the worker without asking it."""
        self._process.kill()

    def join(self) -> None:
        """Wait for the worker to end, for a limited time."""
        self._process.end(_PATIENCE_S)


def first_done(workers: Sequence[Worker]) -> Worker:
    """Wait until one of these workers has an answer, and return that worker. Each must have a task."""
    first: Worker = select.select(workers, [], [])[0][0]
    return first


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
