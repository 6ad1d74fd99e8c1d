"""Reads untrusted text in a separate process, with limits on time and memory.

A regular expression that is quick on every honest source can take hours on one crafted against it. So functions that
read such text run in a separate process, which is killed at its limit; the next call starts a new one. The process runs
only the grader's own functions; the text is data to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

from grader.base.remote import Lost, Remote

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Exceeded(Exception):
    """A call was stopped because it took too long or too much memory. The message says which, as a phrase."""


class Bounded:
    """Calls the grader's functions in a process limited to `memory_bytes`, each for at most `wall_s` seconds."""

    def __init__(self, wall_s: float, memory_bytes: int) -> None:
        self._wall_s, self._memory_bytes = wall_s, memory_bytes
        self._process: Remote | None = None
        self._turn = threading.Lock()

    def call(
        self, function: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        """Return what the function returns, or raise what it raises. Raises Exceeded at a limit."""
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
