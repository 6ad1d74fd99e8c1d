"""What pages show of a submission's own bytes: its report, with the annotated sources, and differences of two.

Both are drawn in a confined process with limits on time, memory and the size of the result, never in the judge's
threads. Results stay in memory, within a limit of bytes, for as long as they are asked for. Each person has a budget of
seconds, so that many requests of one delay nobody else's.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any, ParamSpec

import jinja2
from markupsafe import Markup

from grader.base.names import spelled_out
from grader.classes.batch.view import duration
from grader.classes.final_points import Line, days_words
from grader.judge.problems import Problem
from grader.judge.tokens import Person
from grader.records.record import Record
from grader.report.explain import compare
from grader.sandbox.bounded import Bounded, Exceeded
from grader.site.record_page import environment, report_of
from grader.store import Compressed, Files, decompressed

MOST_BYTES = 1 << 20
"""The size of one drawn result."""
_KEPT_BYTES = 24 << 20
_OF_ONE_PERSON = 2
"""What one person may have drawn at once."""
_BUDGET_S, _REFILL = 30.0, 0.1
"""The seconds of drawing that a person may save up, and those that they get for each second."""
_SHOWN_LINES, _SHOWN_BYTES = 4000, 300_000
_COMPARED_BYTES = 400_000
_PROCESSES = 2

Arguments = ParamSpec("Arguments")


class Drawings:
    """Draws in processes of their own, and keeps what it drew. Use it from the event loop only."""

    def __init__(self) -> None:
        self._kept: OrderedDict[object, Markup] = OrderedDict()
        self._drawing: dict[object, asyncio.Task[Markup]] = {}
        self._busy: Counter[str] = Counter()
        self._budget: dict[str, tuple[float, float]] = {}
        """By student: the seconds that are left, and when they were counted."""
        self._threads = ThreadPoolExecutor(_PROCESSES, "drawing")
        self._rooms = [Bounded(wall_s=20, memory_bytes=1 << 30) for _ in range(_PROCESSES)]

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
        if left_s <= 0 or self._busy[who.submits_as] >= _OF_ONE_PERSON:
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
        """What the function draws in a confined process, or a sentence that says which limit it exceeded."""

        def call() -> str:
            room = self._rooms.pop()
            try:
                return room.call(function, *arguments, **named)
            finally:
                self._rooms.append(room)

        try:
            drawn = await asyncio.get_running_loop().run_in_executor(self._threads, call)
        except Exceeded as exceeded:
            return Markup("<p>This cannot be shown: it {}.</p>").format(str(exceeded))
        if len(drawn) > MOST_BYTES:
            return Markup("<p>This cannot be shown: it has more than {} bytes.</p>").format(MOST_BYTES)
        return Markup(drawn)  # made by our templates, which escape everything


@functools.cache
def pages() -> jinja2.Environment:
    """The templates of the judge and of the site."""
    sites = environment()
    assert sites.loader is not None
    found = sites.overlay(loader=jinja2.ChoiceLoader([jinja2.PackageLoader("grader.judge"), sites.loader]))
    found.filters["clock"] = lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")
    found.filters["wait"], found.filters["days"] = duration, days_words
    return found


# ---- in a confined process ----


def drawn_report(main: str, line: Line, sources: Compressed) -> str:
    """The report of an attempt as HTML: without its sources if it is too large with them."""

    def drawn(shown: Files) -> str:
        values: dict[str, Any] = {"root": "/static", "main": main}
        values["report"] = report_of(line.attempt.record, shown, line)
        return pages().get_template("report.part.j2").render(values)

    with_sources = drawn(_shown(decompressed(sources)))
    return with_sources if len(with_sources) <= MOST_BYTES else drawn(())


def _shown(sources: Files) -> Files:
    """The sources up to a number of lines and bytes; the last line that is shown says that more follow."""
    found, lines, size = list[tuple[str, bytes]](), 0, 0
    for name, content in sources:
        kept = content[: _SHOWN_BYTES - size].splitlines(keepends=True)[: _SHOWN_LINES - lines]
        lines, size = lines + len(kept), size + sum(map(len, kept))
        cut = b"".join(kept)
        more = len(content) - len(cut)
        found.append((name, cut if not more else cut + f"\n… and {more:,} bytes that this page does not show".encode()))
    return tuple(found)


def drawn_difference(before: Compressed, after: Compressed, records: list[Record]) -> str:
    """The changes between two submissions as HTML: of their sources, and of the numbers of their records if there are
    two. difflib takes hours for some texts, and the caller's limits end it."""
    lines = _changes(decompressed(before), decompressed(after))
    numbers = compare(records[0], records[1], headings=("before", "after")) if len(records) == 2 else ""
    return pages().get_template("difference.part.j2").render(lines=lines, numbers=numbers)


_KINDS = {"+++": "file", "---": "file", "@@ ": "where"}


def _changes(before: Files, after: Files) -> list[tuple[str, str]]:
    """The lines of a unified diff, each with its kind: file, where, add, remove or same."""
    if sum(len(content) for _, content in (*before, *after)) > _COMPARED_BYTES:
        return [("where", "The files are too large to compare here.")]
    old, new = dict(before), dict(after)
    lines: list[tuple[str, str]] = []
    for name in sorted(old.keys() | new.keys()):
        was, now = (spelled_out(side.get(name, b"").decode(errors="replace")).splitlines() for side in (old, new))
        for line in difflib.unified_diff(was, now, f"{name}, before", f"{name}, after", lineterm=""):
            kind = _KINDS.get(line[:3]) or {"+": "add", "-": "remove"}.get(line[:1], "same")
            lines.append((kind, line))
    return lines[:_SHOWN_LINES]
