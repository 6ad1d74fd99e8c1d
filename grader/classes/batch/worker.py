"""The program of a worker process (see `crew`): tasks come as pickles on stdin, answers go as pickles to stdout."""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
from typing import IO

from grader.base.errors import GraderFault, MachineFault
from grader.base.unwinding import never_drop_a_signal
from grader.classes.batch.setup import Setup
from grader.classes.batch.work import Answer, Task

_PR_SET_PDEATHSIG = 1


def _serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    setup: Setup = pickle.load(requests)
    with setup.grading() as grading:
        while True:
            try:
                task: Task = pickle.load(requests)
            except EOFError:
                return
            answer: Answer | Exception
            try:
                answer = task(setup, grading)
            except (MachineFault, GraderFault) as fault:
                answer = fault.__class__(str(fault))
            except Exception as error:
                answer = GraderFault(f"{type(error).__name__}: {error}; this is a bug of the grader.")
            pickle.dump(answer, replies)
            replies.flush()


def _main(parent: int) -> None:
    never_drop_a_signal()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds, and so kills the run in progress
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it was gone before we asked to be told
        return
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed goes to stderr: stdout is the coordinator's pipe
    try:
        _serve(sys.stdin.buffer, pipe)
    except (BrokenPipeError, EOFError):
        return


if __name__ == "__main__":
    _main(int(sys.argv[1]))
