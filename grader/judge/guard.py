"""Middleware around every route. It limits the size of request bodies and the time they take, refuses requests by
their headers (`headers`), adds security headers to answers, and counts requests for `/metrics`. An answer is sent
in pieces, the next one when the client has taken the last: a client that does not read holds a piece of memory, and
only as many answers as one person may have open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from grader.judge.headers import (
    cookie_token,
    read_headers,
    refuse_bodies,
    refuse_long_queries,
    refuse_other_sites,
    too_large,
)
from grader.judge.problems import Problem, problem_content, problem_response

log = logging.getLogger(__name__)

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

BODY_S = 60.0
"""The time within which a whole body must arrive."""
_SMALL_BYTES = 4 << 10
"""The limit on bodies that are no uploads: a token, an action of the staff."""
_FORM_BYTES = 64 << 10
"""Room for the bytes that a form adds around the files."""
_SWALLOWED_BYTES, _SWALLOW_S = 16 << 20, 10.0
"""Limits on reading the rest of a refused body. The rest is read because closing a connection while the client still
sends would reset it, and the client would not see the answer."""
_BODY_COMES = (HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNSUPPORTED_MEDIA_TYPE)
_ENDLESS = "/api/v1/events"
_PIECE_BYTES, _PIECE_S = 32 << 10, 30.0
"""An answer is sent in pieces of this size; a client that does not take one within this time is closed."""
_OPEN_BYTES, _OPEN_BYTES_OF_ALL = 4 << 20, 64 << 20
"""The size of all answers that one person, and that all together, have not taken yet."""
_SITE = "'self'"
HEADERS = {
    # Style attributes are allowed: our own templates set the widths of bars there. Text from elsewhere is escaped.
    "content-security-policy": (
        f"default-src 'none'; script-src {_SITE}; style-src {_SITE}; style-src-attr 'unsafe-inline'; img-src {_SITE} "
        f"data:; connect-src {_SITE}; form-action {_SITE}; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
BUCKETS_S = (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)


@dataclass(eq=False)
class Traffic:
    """Counts of answered requests."""

    by_status: Counter[int] = field(default_factory=Counter)
    within: Counter[float] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, status: int, seconds: float) -> None:
        """Count one answer."""
        self.by_status[status] += 1
        self.seconds += seconds
        for bound in BUCKETS_S:
            self.within[bound] += seconds <= bound


class Guard:
    """ASGI middleware around the whole judge."""

    def __init__(self, app: App, upload_bytes: int, traffic: Traffic) -> None:
        self._app, self._upload_bytes, self._traffic = app, upload_bytes + _FORM_BYTES, traffic
        self._open: Counter[object] = Counter()
        """By person: the bytes of the answers that they have not taken yet."""
        self._reported: set[tuple[str, str, int]] = set()
        """The bugs whose traceback is in the log already."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, person_of = time.monotonic(), scope.setdefault("state", {})
        start: MutableMapping[str, Any] | None = None

        async def guarded_send(message: MutableMapping[str, Any]) -> None:
            nonlocal start
            if message["type"] == "http.response.start":
                start = message  # until the size of its body is known
                return
            size, person = len(message.get("body", b"")), person_of.get("person")
            if start is not None:
                if size > _PIECE_BYTES and not self._has_room(person, size):
                    start, message = _TOO_MANY
                names = {name.lower() for name, _ in start.get("headers", [])}
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in names]
                if b"cache-control" not in names:
                    extra.append((b"cache-control", b"no-store"))
                self._traffic.count(start["status"], time.monotonic() - began)
                await send({**start, "headers": [*start.get("headers", []), *extra]})
                start = None
            await self._send_in_pieces(person, message, send)

        method, headers = scope["method"], dict[str, str]()
        most = self._upload_bytes if method == "POST" and scope["path"].endswith("/submissions") else _SMALL_BYTES
        try:
            headers = read_headers(scope["headers"])
            refuse_other_sites(method, headers)
            refuse_long_queries(scope["query_string"])
            refuse_bodies(method, headers, most)
        except Problem as problem:
            if problem.status in _BODY_COMES and "expect" not in headers:  # else it waits for an answer
                await _swallow(receive)
            answer = problem_response(problem.status, problem.detail, {"connection": "close"})
            await answer(scope, receive, guarded_send)
            return
        person_of["token"] = cookie_token(headers)
        # FastAPI parses every cookie of every request, which takes quadratic time for some.
        scope = {**scope, "headers": [header for header in scope["headers"] if header[0] != b"cookie"]}
        if method == "HEAD" and scope["path"] != _ENDLESS:
            scope = {**scope, "method": "GET"}  # uvicorn leaves the body out of the answer
        try:
            await self._app(scope, _bounded(receive, most), guarded_send)
        except _NotTaken:
            return  # uvicorn closes the connection
        except Exception as bug:  # the client has its answer already
            self._log(bug)

    def _has_room(self, person: object, size: int) -> bool:
        most = _OPEN_BYTES_OF_ALL if person is None else _OPEN_BYTES
        return self._open[person] + size <= most and self._open.total() + size <= _OPEN_BYTES_OF_ALL

    async def _send_in_pieces(self, person: object, message: MutableMapping[str, Any], send: Send) -> None:
        body = memoryview(message.get("body", b""))
        self._open[person] += len(body)
        try:
            for begin in range(0, max(len(body), 1), _PIECE_BYTES):
                piece = bytes(body[begin : begin + _PIECE_BYTES])
                more = begin + _PIECE_BYTES < len(body) or message.get("more_body", False)
                async with asyncio.timeout(_PIECE_S):
                    await send({**message, "body": piece, "more_body": more})
        except TimeoutError:
            raise _NotTaken from None
        finally:
            self._open[person] -= len(body)
            if not self._open[person]:
                del self._open[person]

    def _log(self, bug: Exception) -> None:
        """Log a bug with its traceback, and each time again in one line: a client must not fill the log."""
        last = traceback.extract_tb(bug.__traceback__)[-1]
        place = type(bug).__name__, last.filename, last.lineno or 0
        log.error("A request failed: %s in %s:%s", *place, exc_info=None if place in self._reported else bug)
        self._reported.add(place)


class _NotTaken(Exception):
    """A client did not take its answer."""


_TOO_MANY: tuple[dict[str, Any], dict[str, Any]] = (
    {
        "type": "http.response.start",
        "status": 429,
        "headers": [(b"content-type", b"application/problem+json"), (b"retry-after", b"10")],
    },
    {
        "type": "http.response.body",
        "body": json.dumps(
            problem_content(429, "You have many answers open that were not read: read them, or close them.")
        ).encode(),
    },
)


async def _swallow(receive: Receive) -> None:
    """Read the rest of a body, within limits."""
    left = _SWALLOWED_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SWALLOW_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if not message.get("more_body"):
                    return


def _bounded(receive: Receive, most: int) -> Receive:
    """Wrap `receive`, so that a body that is too large or too slow raises Problem."""
    left, until, ended = most, time.monotonic() + BODY_S, False

    async def bounded() -> MutableMapping[str, Any]:
        nonlocal left, ended
        if ended:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), until - time.monotonic())
        except TimeoutError:
            raise Problem(408, f"The request did not arrive within {BODY_S:g} s.", {"connection": "close"}) from None
        left -= len(message.get("body", b""))
        if left < 0:
            await _swallow(receive)
            raise too_large(most)
        ended = not message.get("more_body", False)
        return message

    return bounded
