"""A Python process that runs the grader's functions for its parent process, one call at a time.

Calls and answers are pickled and sent over a socket pair that only these two processes hold. The process runs this
module (`python -m grader.base.remote`) and ends when its parent's end of the socket pair closes, so it never outlives
its parent. (multiprocessing is not used, because it either forks a parent that has threads or imports the parent's main
module again.)
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from grader.base.errors import GraderFault, MachineFault


class Lost(Exception):
    """The process ended before it answered; the message says how, for example SIGKILL or "exit code 1"."""


@dataclass(frozen=True)
class Report:
    """What a call reports while it runs: `answer` returns it before the call's result."""

    value: object


def report(value: object) -> None:
    """In a process that runs a call: send `value` to the parent ahead of the result. Elsewhere it does nothing."""
    if _parent is not None:
        _parent.send((True, Report(value)))


_parent: Connection | None = None


class Remote:
    """A process that runs calls, started when this object is created. `memory_bytes` limits its address space and hides
    its stderr; `own_session` keeps a terminal's Ctrl-C away from it."""

    def __init__(self, *, memory_bytes: int | None = None, own_session: bool = False) -> None:
        self._ours, theirs = Pipe()
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([package, *filter(None, sys.path)])  # both processes can import the same modules
        try:
            self._process = subprocess.Popen(
                # -P: the working folder may hold a submission, whose files must not be taken for modules
                [sys.executable, "-P", "-m", "grader.base.remote", str(theirs.fileno()), str(memory_bytes or "")],
                stdin=subprocess.DEVNULL,
                stdout=2,  # what libraries print is not part of our output
                stderr=None if memory_bytes is None else subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": path},
                pass_fds=(theirs.fileno(),),
                start_new_session=own_session,
            )
        except OSError as error:
            raise MachineFault(
                f"The grader cannot start a Python process: {sys.executable}: {error.strerror}; check that "
                "this user may run that interpreter, and that the machine has room for another process."
            ) from error
        theirs.close()

    def begin(self, function: Callable[..., object], *arguments: object, **named: object) -> None:
        """Start a call of a module-level function; `answer` waits for its end."""
        with contextlib.suppress(OSError):  # the process has ended, which `answer` reports
            self._ours.send((function, arguments, named))

    def answer(self, wall_s: float | None = None) -> Any:
        """Return what the function returned, or raise what it raised; return a Report if the function sent one. Raises
        Lost if the process ended first, and TimeoutError after `wall_s` seconds."""
        try:
            answered = self._ours.poll(wall_s)
            works, result = self._ours.recv() if answered else (False, TimeoutError())
        except (EOFError, OSError):
            code = self._process.wait()
            raise Lost(signal.Signals(-code).name if code < 0 else f"exit code {code}") from None
        if not works:
            raise result
        return result

    def done(self) -> bool:
        """Whether `answer` would return at once."""
        try:
            return self._ours.poll()
        except OSError:
            return True

    def fileno(self) -> int:
        """A descriptor for `select`, readable once there is an answer or the process has ended."""
        return self._ours.fileno()

    def cancel(self) -> None:
        """Ask the process to end now."""
        self._process.terminate()

    def kill(self) -> None:
        """End the process without asking it."""
        self._process.kill()

    def close(self, patience_s: float = 0.0) -> None:
        """Wait at most `patience_s` for the process to end, then kill it."""
        self._ours.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _serve(calls: Connection) -> None:
    global _parent
    _parent = calls
    os.set_inheritable(calls.fileno(), False)  # no program that a call runs may write to it
    while True:
        try:
            function, arguments, named = calls.recv()
            answer = True, function(*arguments, **named)
        except EOFError:
            return
        except Exception as error:
            sendable = _sendable(error)
            sendable.add_note(f"In a worker process:\n{traceback.format_exc()}")  # a pickle loses the traceback
            answer = False, sendable
        calls.send(answer)


def _sendable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return GraderFault(f"{type(error).__name__}: {error}")
    return error


if __name__ == "__main__":
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches this process too, but its parent decides
    if sys.argv[2]:
        resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
    from grader.base import remote  # this module again, under the name by which calls import `report`

    with contextlib.suppress(OSError):  # the parent has ended, so no answer is needed
        remote._serve(Connection(int(sys.argv[1])))
