"""Sends server-sent events to open pages. Each page has a bounded queue of events, so that a slow client takes little
memory. If the queue overflows, the stream ends; the page then opens a new stream and fetches its content again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from dataclasses import dataclass, field

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.judge.foreman import Event
from grader.judge.problems import Problem
from grader.judge.tokens import Person

_AT_MOST = 2000
_WITHOUT_TOKEN = 1000
"""The limit on streams without a token. It leaves room for students, however many boards are open."""
_OF_ONE_PERSON = 12
_PENDING = 64
_ALIVE_S = 15.0
_RETRY_MS = (1000, 5000)
"""The range of times after which a browser reopens a broken stream: random, so that browsers do not all return at the
same moment after a restart."""


@dataclass(eq=False)
class _Watcher:
    person: Person | None
    queue: asyncio.Queue[str] = field(default_factory=lambda: asyncio.Queue(_PENDING))
    lost: bool = False


class Hub:
    """All open streams. Only `publish` may be called outside the event loop."""

    def __init__(self) -> None:
        self._watchers: set[_Watcher] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._beat: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._watchers)

    def open(self, valid_labels: Callable[[], Awaitable[Container[str]]]) -> None:
        """Start to deliver events in the running event loop. `valid_labels` returns the labels of valid tokens."""
        self._loop = asyncio.get_running_loop()
        self._beat = self._loop.create_task(self._keep_alive(valid_labels))

    async def _keep_alive(self, valid_labels: Callable[[], Awaitable[Container[str]]]) -> None:
        while True:
            await asyncio.sleep(_ALIVE_S)
            with contextlib.suppress(MachineFault, UsageError, GraderFault):  # the store cannot be read at the moment
                self.look_after(await valid_labels())

    def look_after(self, labels: Container[str]) -> None:
        """End the streams whose token is not among `labels`. Write to idle streams, so that proxies keep them open and
        lost clients are noticed."""
        for watcher in self._watchers:
            watcher.lost |= watcher.person is not None and watcher.person.label not in labels
            if watcher.queue.empty():
                watcher.queue.put_nowait(": still here\n\n")

    def publish(self, event: Event) -> None:
        """Send an event, from any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, event)

    def close(self) -> None:
        """End all streams."""
        if self._beat is not None:
            self._beat.cancel()
        for watcher in self._watchers:
            watcher.lost = True
            if not watcher.queue.full():
                watcher.queue.put_nowait("")

    def _deliver(self, event: Event) -> None:
        # All watchers get the same text. `student`, which decides who may see the event, is not part of it.
        text = f"data: {json.dumps({name: value for name, value in event.items() if name != 'student'})}\n\n"
        for watcher in self._watchers:
            if not may_see(watcher.person, event):
                continue
            if watcher.queue.full():
                watcher.lost = True
            else:
                watcher.queue.put_nowait(text)

    def watch(self, person: Person | None) -> AsyncIterator[str]:
        """A stream of the events that this person may see; without a person, of the board's events. Raises Problem if
        too many streams are open."""
        same = sum(other.person == person for other in self._watchers)
        if len(self._watchers) >= _AT_MOST or same >= (_WITHOUT_TOKEN if person is None else _OF_ONE_PERSON):
            raise Problem(429, "Too many pages of this judge are open: close some.", {"retry-after": "10"})
        watcher = _Watcher(person)
        self._watchers.add(watcher)
        return self._stream(watcher)

    async def _stream(self, watcher: _Watcher) -> AsyncIterator[str]:
        try:
            yield f"retry: {random.randint(*_RETRY_MS)}\n\n"
            while not watcher.lost:
                yield await watcher.queue.get()
        finally:
            self._watchers.discard(watcher)


def may_see(person: Person | None, event: Event) -> bool:
    """Whether a person may see an event."""
    if event["kind"] == "board":
        return True
    return person is not None and (person.is_staff or event.get("student") == person.submits_as)
