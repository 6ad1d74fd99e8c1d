"""How much may be computed for whom. Each person has a budget of seconds, which all their requests draw from, and takes
turns in the store's thread: the requests of one delay no others. What pages show of a submission's own bytes is drawn
in the room (`drawing`), which takes seconds for some bytes."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate
from weakref import WeakValueDictionary

from markupsafe import Markup

from grader.classes.batch.view import duration
from grader.judge.ledger import Ledger
from grader.judge.problems import Problem
from grader.judge.store_thread import Arguments, Result, StoreThread
from grader.judge.tokens import Person
from grader.sandbox.room import Unreadable

_KEPT_BYTES = 24 << 20
_AT_ONCE, _AT_ONCE_OF_ONE = 2, 2
"""The number of drawings at once, and what one person may have drawn or waiting."""
_BUDGET_S, _REFILL = 30.0, 0.1
"""The seconds of computing that a person may save up, and those that they get for each second."""


class Budgets:
    """The seconds that are left to each person. Use it from the event loop only."""

    def __init__(self, books: StoreThread) -> None:
        self._books = books
        self._left: dict[str, tuple[float, float]] = {}
        """By person: the seconds that are left, and when they were counted."""
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def refuse(self, who: Person, *, busy: bool = False) -> None:
        """Raise Problem if a student has nothing left, or is `busy`."""
        left_s = self._left_s(who.submits_as)
        if not who.is_staff and (left_s <= 0 or busy):
            wait_s = 2 if left_s > 0 else int(-left_s / _REFILL) + 1
            said = f"You ask for many pages that take long to make: try again in {duration(wait_s)}."
            raise Problem(429, said, {"retry-after": str(wait_s)})

    def spend(self, person: str, seconds: float) -> None:
        """Take these seconds from a person's budget."""
        self._left[person] = self._left_s(person) - seconds, time.monotonic()

    def _left_s(self, person: str) -> float:
        left_s, counted = self._left.get(person, (_BUDGET_S, 0.0))
        return min(_BUDGET_S, left_s + (time.monotonic() - counted) * _REFILL)

    async def read(
        self,
        who: Person,
        function: Callable[Concatenate[Ledger, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """What a function of the ledger finds for `who`, from their budget and after their other requests: of each
        person, one waits for the store's thread. Raises Problem if nothing is left."""
        spent_s = 0.0

        def timed(ledger: Ledger) -> Result:
            nonlocal spent_s
            began = time.thread_time()
            try:
                return function(ledger, *arguments, **named)
            finally:
                spent_s = time.thread_time() - began

        async with self._turns.setdefault(who.submits_as, asyncio.Lock()):
            self.refuse(who)
            try:
                return await self._books.ask(timed)
            finally:
                self.spend(who.submits_as, spent_s)


class Drawings:
    """What was drawn and what is being drawn. Use it from the event loop only."""

    def __init__(self, budgets: Budgets) -> None:
        self._budgets = budgets
        self._kept: OrderedDict[object, Markup] = OrderedDict()
        self._drawing: dict[object, asyncio.Task[Markup]] = {}
        self._busy: Counter[str] = Counter()
        self._threads = ThreadPoolExecutor(_AT_ONCE, "drawing")

    async def get(self, who: Person, key: object, draw: Callable[[], Awaitable[Markup]]) -> Markup:
        """The result that was drawn for `key`, or what `draw` returns. Raises Problem if `who` asks for too much."""
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        if (drawing := self._drawing.get(key)) is None:
            self._budgets.refuse(who, busy=self._busy[who.submits_as] >= _AT_ONCE_OF_ONE)
            drawing = self._drawing[key] = asyncio.create_task(self._draw(who, key, draw))
        return await asyncio.shield(drawing)  # a client that leaves does not end what others wait for

    async def _draw(self, who: Person, key: object, draw: Callable[[], Awaitable[Markup]]) -> Markup:
        self._busy[who.submits_as] += 1
        began = time.monotonic()
        try:
            self._kept[key] = drawn = await draw()
        finally:
            del self._drawing[key]
            self._busy[who.submits_as] -= 1
            self._budgets.spend(who.submits_as, time.monotonic() - began)
        while sum(map(len, self._kept.values())) > _KEPT_BYTES:
            self._kept.popitem(last=False)
        return drawn

    async def apart(
        self, function: Callable[Arguments, str], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Markup:
        """What a confined function draws, or a sentence that says why it cannot."""
        call = partial(function, *arguments, **named)
        try:
            return Markup(await asyncio.get_running_loop().run_in_executor(self._threads, call))
        except Unreadable as why:
            return Markup("<p>This cannot be shown: it {}.</p>").format(str(why))
