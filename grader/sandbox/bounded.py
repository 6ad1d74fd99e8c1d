"""Work on other people's text in a process of its own, with a limit of time and of memory.

A pattern that is quick on every honest source can take hours on one that was made for it. What looks through such text
runs here: the process is killed at its limit, and another takes its place for the next call. It runs the grader's own
functions only; what they read is data. It is `python -m grader.sandbox.bounded`, reads pickled calls from stdin, which
only its parent writes, and ends when that closes.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import select
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_LENGTH = struct.Struct("<Q")
_MOST_RESULT_BYTES = 1 << 30


class Exceeded(Exception):
    """A call was given up: it took too long or too much memory. It says which, as a phrase."""


class Bounded:
    """Calls functions of the grader's modules in a process of `memory_bytes`, each for `wall_s` seconds at most."""

    def __init__(self, wall_s: float, memory_bytes: int) -> None:
        self._wall_s, self._memory_bytes = wall_s, memory_bytes
        self._process: subprocess.Popen[bytes] | None = None
        self._turn = threading.Lock()

    def call(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """What the function returns; what it raises is raised here. Raises Exceeded at a limit."""
        with self._turn:
            process = self._started()
            assert process.stdin is not None and process.stdout is not None
            try:
                with contextlib.suppress(BrokenPipeError):
                    pickle.dump((function, arguments, named), process.stdin)
                    process.stdin.flush()
                answer = _read_answer(process.stdout, time.monotonic() + self._wall_s)
            except TimeoutError:
                raise Exceeded(f"took longer than {self._wall_s:g} s") from None
            except EOFError:
                raise Exceeded(f"took more memory than {self._memory_bytes / 2**30:g} GiB") from None
            finally:
                if sys.exc_info()[0] is not None:
                    self._end()
        works, result = pickle.loads(answer)
        if not works:
            if isinstance(result, MemoryError):
                raise Exceeded(f"took more memory than {self._memory_bytes / 2**30:g} GiB")
            raise result
        return result  # type: ignore[no-any-return]

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            package = str(Path(__file__).resolve().parents[2])
            self._process = subprocess.Popen(
                [sys.executable, "-m", "grader.sandbox.bounded", str(self._memory_bytes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([package, *filter(None, sys.path)])},
            )
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _read_answer(stream: IO[bytes], deadline: float) -> bytes:
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size, deadline))
    if length > _MOST_RESULT_BYTES:
        raise EOFError
    return _read(stream, length, deadline)


def _read(stream: IO[bytes], length: int, deadline: float) -> bytes:
    found = bytearray()
    while len(found) < length:
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(stream.fileno(), min(1 << 20, length - len(found)))
        if not part:
            raise EOFError
        found += part
    return bytes(found)


def main() -> None:
    memory_bytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    answers, calls = os.fdopen(os.dup(1), "wb"), sys.stdin.buffer
    os.dup2(2, 1)  # what a library prints is no answer
    while True:
        try:
            function, arguments, named = pickle.load(calls)
        except EOFError:
            return
        try:
            answer = pickle.dumps((True, function(*arguments, **named)))
        except Exception as error:
            answer = pickle.dumps((False, error))
        answers.write(_LENGTH.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    main()
