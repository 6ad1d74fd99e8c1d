"""Middleware around every route. It limits the size of request bodies and the time they take, refuses cross-site
requests, adds security headers to answers, and counts requests for `/metrics`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from grader.judge.problems import Problem, problem_response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADER_BYTES = 16 << 10
BODY_S = 60.0
"""The time within which a whole body must arrive."""
_SMALL_BYTES = 64 << 10
_FORM_BYTES = 64 << 10
"""Room for the bytes that a form adds around the files."""
_SWALLOWED_BYTES, _SWALLOW_S = 16 << 20, 10.0
"""Limits on reading the rest of a refused body. The rest is read because closing a connection while the client still
sends would reset it, and the client would not see the answer."""
_ENDLESS = "/api/v1/events"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began, state = time.monotonic(), {"status": 500}

        async def guarded_send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                names = {name.lower() for name, _ in message.get("headers", [])}
                extra = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in names]
                if b"cache-control" not in names:
                    extra.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message.get("headers", []), *extra]}
                self._traffic.count(message["status"], time.monotonic() - began)
            await send(message)

        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        most = (
            self._upload_bytes if scope["method"] == "POST" and scope["path"].endswith("/submissions") else _SMALL_BYTES
        )
        try:
            if sum(len(name) + len(value) for name, value in scope["headers"]) > HEADER_BYTES:
                raise Problem(431, f"The headers of this request are more than {HEADER_BYTES:,} bytes.")
            _refuse_other_sites(scope["method"], headers)
            length = headers.get("content-length", "0")
            if not length.isdecimal() or int(length) > most:
                if "expect" not in headers:  # with Expect, the client sends no body before it has an answer
                    await _swallow(receive)
                raise too_large(most)
        except Problem as problem:
            answer = problem_response(problem.status, problem.detail, {"connection": "close"})
            await answer(scope, receive, guarded_send)
            return
        if scope["method"] == "HEAD" and scope["path"] != _ENDLESS:
            scope = {**scope, "method": "GET"}  # uvicorn leaves the body out of the answer
        await self._app(scope, _bounded(receive, most), guarded_send)


def too_large(most: int) -> Problem:
    """The refusal of a body of more than `most` bytes."""
    return Problem(
        413,
        f"The request has more than the {most:,} bytes that the judge takes: submit source code only.",
        {"connection": "close"},
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


def _refuse_other_sites(method: str, headers: dict[str, str]) -> None:
    """Refuse a change that a page of another site requests: a browser could send our cookie with it. A request with a
    token in `Authorization` passes, since a browser never adds that header by itself."""
    if method in _SAFE or "authorization" in headers:
        return
    site, origin = headers.get("sec-fetch-site"), headers.get("origin", "")
    # Newer browsers send Sec-Fetch-Site. Older ones send Origin, which may be "null" and is then refused.
    if site != "same-origin" and not (site is None and urlsplit(origin).netloc == headers.get("host")):
        raise Problem(
            403,
            "This request came from another site: use the judge's own pages, or send a token as Authorization: Bearer.",
        )
