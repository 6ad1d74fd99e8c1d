"""The room: where bytes of a submission, of a compiler that works for it, or of somebody's store or record are parsed.

A function that parses such bytes is `confined`:

    @confined(cpu_s=10)
    def count_kernels(ptx: bytes) -> int:
        from cudaemu.ptx import parse    # what parses is imported here, so that only the room loads it
        return len(parse(ptx.decode()).functions)

Called anywhere, it runs in a process of its own, and the caller gets its result or `Unreadable`. Called by another
confined function, it is an ordinary call.

Theory of operation. A grader process starts a fork server (`fork_server`) at its first such call. The server has no
secret in its environment and never looks at untrusted bytes: it imports the function's module and forks, which takes
5 ms where a new Python process takes 200. The child gives up what it inherited, confines itself (Landlock, seccomp: no
network, no new process, no file but Python's own libraries, nothing to write), sets its limits, and only then reads the
arguments. On a kernel without Landlock the server runs in a bubblewrap container. Each call has a child of its own, so
one submission's bytes never meet another's.

Limits. `cpu_s` is processor time, because on a loaded machine wall time accuses honest programs; the wall limit is only
there to end a child that sleeps. `memory_bytes` limits the address space, `answer_bytes` the answer.

Calls of one step, such as a build, draw from its budget as well: `budget.drawing`.

Who trusts whom. The child may be taken over by what it reads. It answers in JSON, never in pickles, and pydantic
validates the answer against the function's return type before the caller sees it: give sentences, lists and numbers
types that bound them (`Sentence`, `Annotated[..., Field(max_length=...)]`). Arguments are trusted; they travel as a
pickle, and open binary files among them as descriptors, which the child can only read if they were opened so.

Faults. Whatever the bytes make of the function (a limit, a crash, an exception that it did not expect) is `Unreadable`,
never a fault of the grader: that is said only if a control call fails at the same moment (MachineFault).
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import functools
import io
import json
import math
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated, Any, ParamSpec, TypeVar

from pydantic import BeforeValidator, Field, PlainSerializer, TypeAdapter, ValidationError

from cudaemu.errors import MAX_DETAIL, MAX_SENTENCE, Exceeded, Unreadable, shortened
from cudaemu.host import Confined, ReaderLimits
from grader.base.errors import GraderFault, MachineFault
from grader.base.identity import PACKAGES
from grader.sandbox import bubblewrap, budget, landlock
from grader.sandbox.budget import Budget
from grader.sandbox.job import Job
from grader.sandbox.private import hidden_in_system

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

Sentence = Annotated[str, Field(max_length=MAX_SENTENCE)]
"""A phrase or sentence for a person. `shortened` makes one of a text of any length."""
Blob = Annotated[
    bytes,
    PlainSerializer(lambda content: base64.b64encode(content).decode(), when_used="json"),
    BeforeValidator(lambda given: base64.b64decode(given) if isinstance(given, str) else given),
]
"""Bytes in an answer."""

_WALL_S = 60.0
_WALL_PER_CPU_S = 20
"""A call may take this many times its processor time, and a minute, until it is ended."""
_CHUNK = 1 << 20
_MAX_STATUS = 1 << 16
_ATTEMPTS = 2
_NO_PROCESSES = "The grader cannot run its own confined processes"

VALUE, REFUSED, CRASHED, OUT_OF_MEMORY = b"V", b"R", b"C", b"M"
"""The first byte of an answer."""


class AtLimit(Exceeded):
    """The call ended at its limit of processor time, memory or answer, as it would again on any machine."""


def confined(
    *, cpu_s: int = 10, memory_bytes: int = 1 << 30, answer_bytes: int = 1 << 20
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Let a module-level function run in the room; its return type must be annotated. The function raises Unreadable
    for bytes that it refuses, and the caller gets that, or Unreadable for a limit or a crash."""
    limits = ReaderLimits(cpu_s, memory_bytes, answer_bytes)

    def wrap(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        @functools.wraps(function)
        def call(*arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
            if inside():
                return function(*arguments, **named)
            return read(Confined(function, limits), *arguments, **named)

        return call

    return wrap


def read(reader: Confined[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
    """Call a reader in the room: for `confined`, and for readers of the emulator. Raises Unreadable."""
    function = reader.__wrapped__
    answer = _ask(function.__module__, function.__qualname__, reader.limits, (arguments, named))
    try:
        return typing.cast(Result, answer_type(function).validate_json(answer, strict=True))
    except ValidationError as error:
        raise Exceeded("gives an answer that is too large or of the wrong kind", str(error)) from None


@functools.cache
def answer_type(function: Callable[..., object]) -> TypeAdapter[Any]:
    """The type that a confined function returns, for pydantic."""
    return TypeAdapter(typing.get_type_hints(function, include_extras=True)["return"])


_inside = False


def inside() -> bool:
    """Whether this process is the child of a fork server."""
    return _inside


def enter() -> None:
    """Say that this process is such a child. Called by `fork_server`, and by tests of functions that parse."""
    global _inside
    _inside = True


def warm(*modules: str) -> None:
    """Let the fork server start, and import these modules in the background, for a call that is about to come."""
    with contextlib.suppress(OSError):
        _server().request({"import": modules})


@confined(cpu_s=5)
def control() -> Annotated[int, Field(ge=0, le=1 << 20)]:
    """The control call: what the grader asks of the room when a submission's call failed."""
    return sum(range(1000))


def _ask(module: str, name: str, limits: ReaderLimits, arguments: object) -> bytes:
    """The JSON of the function's result. Raises Unreadable, and MachineFault if not even `control` works."""
    drawn = budget.current() if name != control.__qualname__ else None
    for _ in range(_ATTEMPTS):
        if drawn is not None:
            limits = replace(limits, cpu_s=min(limits.cpu_s, math.ceil(drawn.left_s()[0])))
        try:
            return _answer(module, name, limits, arguments, drawn)
        except _ServerEnded:
            continue
        except Exceeded as exceeded:
            if name == control.__qualname__:
                raise MachineFault(f"{_NO_PROCESSES}: {exceeded}; see `grader doctor`.") from None
            control()
            if drawn is not None:
                drawn.left_s()
            raise
    raise MachineFault(f"{_NO_PROCESSES}: they were killed; free memory, then repeat the command.")


class _ServerEnded(Exception):
    """The fork server was killed: by a person, or by a kernel without memory."""


def _answer(module: str, name: str, limits: ReaderLimits, arguments: object, drawn: Budget | None) -> bytes:
    files: list[int] = []
    payload = _pickled(arguments, files)
    ours, theirs = socket.socketpair()
    status, status_theirs = os.pipe()
    try:
        request = {"module": module, "name": name, "cpu_s": limits.cpu_s, "memory_bytes": limits.memory_bytes}
        try:
            _server().request(request, theirs.fileno(), status_theirs)
        except OSError:
            _forget_server()
            raise _ServerEnded from None
        finally:
            theirs.close()
            os.close(status_theirs)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the child has ended, as its status says
            socket.send_fds(ours, [b"\0"], files)
            ours.sendall(payload)
            ours.shutdown(socket.SHUT_WR)
        kind, answer = _received(ours, limits)
        facts = _facts(status) if drawn is not None or kind not in (VALUE, REFUSED, OUT_OF_MEMORY, CRASHED) else {}
        if drawn is not None:
            drawn.spend(facts["cpu_s"])
        if kind == VALUE:
            return answer
        text = shortened(answer.decode(errors="replace"), MAX_DETAIL)
        if kind == REFUSED:
            raise Unreadable(text)
        if kind == OUT_OF_MEMORY:
            raise AtLimit(f"takes more memory than {limits.memory_bytes / 2**30:g} GiB")
        if kind == CRASHED:
            headline, _, detail = text.partition("\n")
            raise Exceeded(headline, detail)
        raise _how_it_ended(facts, limits)
    finally:
        ours.close()
        os.close(status)  # if the child still runs, the server kills it now


def _received(ours: socket.socket, limits: ReaderLimits) -> tuple[bytes, bytes]:
    deadline = time.monotonic() + _WALL_S + _WALL_PER_CPU_S * limits.cpu_s
    kind, answer = b"", bytearray()
    while True:
        ours.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            chunk = ours.recv(_CHUNK)
        except TimeoutError:
            raise Exceeded("did not end") from None
        except ConnectionResetError:
            return b"", b""
        if not chunk:
            return kind, bytes(answer)
        if not kind:
            kind, chunk = chunk[:1], chunk[1:]
        answer += chunk
        if len(answer) > limits.answer_bytes:
            raise AtLimit(f"gives an answer of more than {limits.answer_bytes:,} bytes")


def _facts(status: int) -> dict[str, Any]:
    """What the server wrote after it had reaped the child."""
    if not select.select([status], [], [], _WALL_S)[0]:
        raise Exceeded("did not end")
    written = os.read(status, _MAX_STATUS)
    if not written:
        raise _ServerEnded
    facts: dict[str, Any] = json.loads(written)
    if problem := facts.get("problem"):
        raise GraderFault(f"The grader's confined process could not start: {problem}")
    return facts


def _how_it_ended(facts: Mapping[str, Any], limits: ReaderLimits) -> Exceeded:
    """Why a child ended without an answer."""
    code = facts["exit"]
    if code == -signal.SIGXCPU or facts["cpu_s"] > limits.cpu_s - 0.1:
        return AtLimit(f"takes longer than {limits.cpu_s} s of processor time")
    return Exceeded(f"ends its reader with {signal.Signals(-code).name if code < 0 else f'exit code {code}'}")


def _pickled(arguments: object, files: list[int]) -> bytes:
    """Pickle the arguments. An open file among them becomes its place in `files`, which gets its descriptor."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: object) -> int | None:
            if not isinstance(item, io.IOBase) or isinstance(item, io.BytesIO):
                return None
            files.append(item.fileno())
            return len(files) - 1

    buffer = io.BytesIO()
    Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(arguments)
    return buffer.getvalue()


def unpickled(payload: bytes, files: list[int]) -> Any:
    """The reverse of `_pickled`, in the child."""

    class Unpickler(pickle.Unpickler):
        def persistent_load(self, place: int) -> IO[bytes]:
            return os.fdopen(files[place], "rb")

    return Unpickler(io.BytesIO(payload)).load()


# ---- the fork server ------------------------------------------------------------------------------------------------


class _Server:
    """This process's connection to its fork server, which ends when the connection closes."""

    def __init__(self) -> None:
        search_path = [*(str(package.parent) for package in PACKAGES), *filter(None, sys.path)]
        environment = {"PYTHONPATH": os.pathsep.join(search_path), "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1"}
        environment["PYTHONHASHSEED"] = "0"  # calls may compare hashes of each other
        self.owner = os.getpid()
        self._turn = threading.Lock()
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = (sys.executable, "-P", "-m", "grader.sandbox.fork_server", str(theirs.fileno()))
        with theirs, contextlib.ExitStack() as files:
            if not landlock.version() and bubblewrap.problem() is None:
                self._process = self._start(*_contained(command, environment, files), theirs.fileno())
                theirs.close()
                self._ours.recv(1)  # the container has what it needs
            else:
                self._process = self._start(command, environment, theirs.fileno())

    def _start(
        self, command: Sequence[str], environment: Mapping[str, str], *descriptors: int
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=environment,
                cwd="/",
                pass_fds=descriptors,
                start_new_session=True,  # a terminal's Ctrl-C is for the grader
            )
        except OSError as error:
            raise MachineFault(
                f"The grader cannot start a Python process: {sys.executable}: {error.strerror}; check that this "
                "user may run that interpreter, and that the machine has room for another process."
            ) from error

    def request(self, request: dict[str, object], *descriptors: int) -> None:
        with self._turn:
            socket.send_fds(self._ours, [json.dumps(request).encode()], descriptors)

    def end(self) -> None:
        self._ours.close()
        if self.owner == os.getpid():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)


def _contained(
    command: tuple[str, ...], environment: dict[str, str], files: contextlib.ExitStack
) -> tuple[list[str], dict[str, str], int]:
    """The command in a container that shows Python and the grader, its environment, and a descriptor that it needs."""
    readable = {path for path in (*PACKAGES, Path(sys.prefix), Path(sys.base_prefix)) if path.exists()}
    job = Job(command, Path(files.enter_context(tempfile.TemporaryDirectory())), readable=tuple(readable))
    status = files.enter_context(tempfile.TemporaryFile()).fileno()  # noqa: SIM115 (the stack closes it)
    hidden = hidden_in_system()
    words = bubblewrap.command_line(job, environment, seccomp_fd=None, status_fd=status, accounts={}, hidden=hidden)
    return [*words, "--hello"], environment, status


_current: _Server | None = None
_starting = threading.Lock()


def _forget_server() -> None:
    global _current
    with _starting:
        _current = None


def _server() -> _Server:
    global _current
    with _starting:
        if _current is None or _current.owner != os.getpid():
            _current = _Server()
            atexit.register(_current.end)
        return _current
