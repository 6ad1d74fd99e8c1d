"""The judge as a web server: the FastAPI application, and uvicorn around it."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from grader.base.errors import MachineFault, UsageError
from grader.base.identity import identity
from grader.judge import entrance, staff_room, submissions
from grader.judge.guard import Guard
from grader.judge.headers import HEADER_BYTES, MAX_HEADERS
from grader.judge.hub import Hub
from grader.judge.negotiation import show_problem
from grader.judge.office import Judge
from grader.judge.problems import PROBLEMS, Problem

HEADERS_S = 15.0
"""A connection is closed if no request begins within this time."""
_CONNECTIONS = 4000
_HEAD_END = re.compile(rb"\n\r?\n")
_PARTS = (entrance, submissions, staff_room)
log = logging.getLogger(__name__)
_SWITCH_S = 0.0005
"""The time after which a running Python thread must let others run. With Python's default of 5 ms, every busy thread
could delay an answer by that much."""
_LAST_WORDS_S = 5


def application(judge: Judge) -> FastAPI:
    """The application; it opens and closes the judge."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        judge.open()
        yield
        judge.close()

    app = FastAPI(
        title=f"Judge of {judge.rules.title}", version=identity().version, lifespan=lifespan, docs_url=None,
        redoc_url=None, openapi_url="/api/openapi.json",
    )  # fmt: skip
    app.state.judge = judge
    for part in _PARTS:
        app.include_router(part.api, responses=PROBLEMS)
        app.include_router(part.page)
    app.add_exception_handler(Problem, show_problem)
    app.add_exception_handler(HTTPException, _http_problem)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(MachineFault, _machine)
    app.add_exception_handler(UsageError, _machine)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _bug)
    app.add_middleware(Guard, upload_bytes=judge.rules.judge.max_upload_bytes, traffic=judge.traffic)
    return app


async def _http_problem(request: Request, error: Exception) -> Response:
    """Answer a request that FastAPI itself refuses, with a sentence that says what to do."""
    assert isinstance(error, HTTPException)
    said, headers = f"{str(error.detail).rstrip('.')}.", dict(error.headers or {})
    if error.status_code == 404:
        said = "There is nothing at this address: check it, or begin at the judge's first page."
    elif error.status_code == 405:  # each method of an address is a route of its own
        every = [route for part in _PARTS for route in (*part.api.routes, *part.page.routes)]
        routes = [route for route in every if isinstance(route, Route)]
        takes = [route.methods or () for route in routes if route.matches(request.scope)[0] is not Match.NONE]
        headers["Allow"] = ", ".join(sorted({method for methods in takes for method in methods}))
        said = f"This address does not support this method, only {headers['Allow']}."
    return await show_problem(request, Problem(error.status_code, said, headers))


async def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return await show_problem(request, Problem(422, f"{where}: {first['msg']}."))


async def _machine(request: Request, error: Exception) -> Response:
    """Answer a request when the machine fails, for example because the disk is full. The answer says what to do; the
    log and the staff's page say why."""
    log.warning("%s was not answered: %s", request.method, error)
    can = "read its disk or start a process" if request.method in ("GET", "HEAD") else "write to its disk"
    said = f"The judge cannot {can} now: try again in a few minutes. What was submitted before is safe."
    return await show_problem(request, Problem(507, said, {"retry-after": "60"}))


class _Server(uvicorn.Server):
    """uvicorn's server. At shutdown it first ends the event streams, for which uvicorn would wait."""

    streams: Hub | None = None

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        if self.streams is not None:
            self.streams.close()
        await super().shutdown(sockets)


class _Whole(h11.Connection):
    """Reads no body in chunks: `guard` refuses it, and its pieces, which may be of one byte each, are not parsed. Nor
    are the headers of a request that has more than MAX_HEADERS."""

    _in_chunks = False

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        if self._in_chunks:
            return h11.PAUSED
        if self.their_state is h11.IDLE and _HEAD_END.split(self.trailing_data[0], 1)[0].count(b"\n") > MAX_HEADERS:
            self._process_error(h11.CLIENT)
            raise h11.RemoteProtocolError("too many headers", error_status_hint=431)
        event = super().next_event()
        self._in_chunks = isinstance(event, h11.Request) and any(n == b"transfer-encoding" for n, _ in event.headers)
        return event


class _Impatient(H11Protocol):
    """uvicorn's HTTP protocol, which also closes a connection that takes too long to send a request's headers, and
    reads little at once: what a client sends behind a request waits in the kernel, not in the judge's memory."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = _Whole(h11.SERVER, HEADER_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        transport.max_size = HEADER_BYTES  # type: ignore[attr-defined] # what asyncio reads at once, 256 KiB by default
        super().connection_made(transport)
        self._asking = self.loop.call_later(HEADERS_S, self._check)
        self._seen = self._cycles = 0

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        self._cycles += self.cycle is not before

    def _check(self) -> None:
        idle = self.cycle is None or self.cycle.response_complete
        if idle and self._cycles == self._seen:
            self.transport.close()
            return
        self._seen = self._cycles
        self._asking = self.loop.call_later(HEADERS_S, self._check)

    def connection_lost(self, exc: Exception | None) -> None:
        self._asking.cancel()
        super().connection_lost(exc)


async def _gone(request: Request, error: Exception) -> Response:
    """Answer a client that disconnected in the middle of its request. Nobody reads the answer; it only keeps this
    ordinary event out of the log."""
    return Response(status_code=400)


async def _bug(request: Request, error: Exception) -> Response:
    return await show_problem(request, Problem(500, "The judge failed, not you: please report this to the staff."))


def config_of(app: FastAPI) -> uvicorn.Config:
    """uvicorn's settings: limits that hold before a request reaches the application."""
    return uvicorn.Config(
        app,
        http=_Impatient,
        loop="asyncio",
        ws="none",
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_LAST_WORDS_S,
        timeout_keep_alive=30,
        log_level="error",  # a client that sends no HTTP would fill the log with uvicorn's warnings
        access_log=False,
        server_header=False,
        forwarded_allow_ips="127.0.0.1",
    )


def reserve(host: str, port: int) -> socket.socket:
    """Bind a socket to this address; connections are refused until the judge serves. Raises UsageError."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        reserved = socket.socket(family, kind)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind(address)
    except OSError as error:
        raise UsageError(
            f"The judge cannot listen on {host}, port {port}: {error.strerror}. Choose another --host or --port."
        ) from error
    return reserved


def serve(judge: Judge, reserved: socket.socket) -> None:
    """Serve until a signal ends it."""
    sys.setswitchinterval(_SWITCH_S)
    server = _Server(config_of(application(judge)))
    server.streams = judge.hub
    server.run([reserved])
