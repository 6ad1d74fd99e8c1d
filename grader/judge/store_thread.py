"""The thread through which all other threads of the judge use the store. It has the judge's only connection, so no
thread waits for another one's lock, and every call sees what earlier calls wrote. Calls are short: a commit, some
rows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from grader.judge.ledger import Ledger
from grader.store import Store
from grader.store.sqlite_errors import translate_sqlite_errors

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class StoreThread:
    """Calls functions of the ledger in the thread that owns it."""

    def __init__(self, path: Path, assignment: str) -> None:
        self._path = path
        self._thread = ThreadPoolExecutor(1, "store")
        self._ledger = self._thread.submit(lambda: Ledger(Store(path), assignment)).result()

    def call(
        self,
        function: Callable[Concatenate[Ledger, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Call a function, and wait for its result. Raises MachineFault if the disk is full or fails, and UsageError or
        GraderFault if the file is damaged or not a store."""
        return self._thread.submit(self._translated, partial(function, self._ledger, *arguments, **named)).result()

    async def ask(
        self,
        function: Callable[Concatenate[Ledger, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Like `call`, in an event loop."""
        call = partial(function, self._ledger, *arguments, **named)
        return await asyncio.wrap_future(self._thread.submit(self._translated, call))

    def _translated(self, call: Callable[[], Result]) -> Result:
        with translate_sqlite_errors(self._path):
            return call()

    def close(self) -> None:
        """Close the store, after all earlier calls."""
        self.call(lambda ledger: ledger.store.close())
        self._thread.shutdown()
