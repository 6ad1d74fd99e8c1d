"""Who may have how much drawn. What pages show of a submission's own bytes is drawn in the room (`drawing`),
which takes seconds for some bytes. Each person has a budget of seconds: the requests of one delay no others."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec

from markupsafe import Markup

from grader.classes.batch.view import duration
from grader.judge.problems import Problem
from grader.judge.tokens import Person
from grader.sandbox.room import Unreadable

_KEPT_BYTES = 24 << 20
_AT_ONCE, _AT_ONCE_OF_ONE = 2, 2
"""The number of drawings at once, and what one person may have drawn or waiting."""
_BUDGET_S, _REFILL = 30.0, 0.1
"""The seconds of drawing that a person may save up, and those that they get for each second."""

Arguments = ParamSpec("Arguments")


class Drawings:
    """What was drawn and what is being drawn. Use it from the event loop only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, Markup] = OrderedDict()
        self._drawing: dict[object, asyncio.Task[Markup]] = {}
        self._busy: Counter[str] = Counter()
        self._budget: dict[str, tuple[float, float]] = {}
        """By student: the seconds that are left, and when they were counted."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, "drawing")

    async def get(self, who: Person, key: object, draw: Callable[[], Awaitable[Markup]]) -> Markup:
        """The result that was drawn for `key`, or what `draw` returns. Raises Problem if `who` asks for too much."""
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        if (drawing := self._drawing.get(key)) is None:
            self._refuse(who)
            drawing = self._drawing[key] = asyncio.create_task(self._draw(who, key, draw))
        return await asyncio.shield(drawing)  # a client that leaves does not end what others wait for

    def _refuse(self, who: Person) -> None:
        left_s, counted = self._budget.get(who.submits_as, (_BUDGET_S, 0.0))
        now = time.monotonic()
        left_s = min(_BUDGET_S, left_s + (now - counted) * _REFILL)
        self._budget[who.submits_as] = left_s, now
        if who.is_staff:
            return
        if left_s <= 0 or self._busy[who.submits_as] >= _AT_ONCE_OF_ONE:
            wait_s = 2 if left_s > 0 else int(-left_s / _REFILL) + 1
            said = f"You ask for many pages that take long to make: try again in {duration(wait_s)}."
            raise Problem(429, said, {"retry-after": str(wait_s)})

    async def _draw(self, who: Person, key: object, draw: Callable[[], Awaitable[Markup]]) -> Markup:
        self._busy[who.submits_as] += 1
        began = time.monotonic()
        try:
            self._kept[key] = drawn = await draw()
        finally:
            del self._drawing[key]
            self._busy[who.submits_as] -= 1
            left_s, counted = self._budget[who.submits_as]
            self._budget[who.submits_as] = left_s - (time.monotonic() - began), counted
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
