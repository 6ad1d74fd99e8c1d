"""Work on other people's text in a process of its own, with a limit of time and of memory.

A pattern that is quick on every honest source can take hours on one that was made for it. What looks through such text
runs here: the process is killed at its limit, and another takes its place for the next call. It runs the grader's own
functions only; what they read is data.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from grader.base.remote import Lost, Remote

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Exceeded(Exception):
    """A call was given up: it took too long or too much memory. It says which, as a phrase."""


class Bounded:
    """Calls functions of the grader's modules in a process of `memory_bytes`, each for `wall_s` seconds at most."""

    def __init__(self, wall_s: float, memory_bytes: int) -> None:
        self._wall_s, self._memory_bytes = wall_s, memory_bytes
        self._process: Remote | None = None
        self._turn = threading.Lock()

    def call(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """What the function returns; what it raises is raised here. Raises Exceeded at a limit."""
        with self._turn:
            process, self._process = self._process or Remote(memory_bytes=self._memory_bytes), None
            try:
                process.begin(function, *arguments, **named)
                result = process.answer(self._wall_s)
            except (TimeoutError, Lost, MemoryError) as error:
                process.end()
                if isinstance(error, TimeoutError):
                    raise Exceeded(f"took longer than {self._wall_s:g} s") from None
                raise Exceeded(f"took more memory than {self._memory_bytes / 2**30:g} GiB") from None
            except Exception:
                self._process = process
                raise
            except BaseException:
                process.end()
                raise
            self._process = process
        return cast(Result, result)
