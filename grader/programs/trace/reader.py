"""Reads a trace file without trusting it: a student's program had it open for writing.

Whatever the file contains, reading ends, uses bounded memory and raises no error about the content. Reading stops at a
line that no tracer would write, such as a kernel that no GPU can run, because nothing after it can be trusted. It also
stops after MAX_CPU_S and, but for findings, after MAX_EVENTS or MAX_LINES. In all these cases the trace is incomplete:
the run keeps its verdict but has no time.

This is read in the grader's own process, not in the room: an honest trace can have 1.6 million events, which would be
read a second time as the room's answer. Python's JSON parser, on one line of at most 64 KiB at a time, is all that sees
its bytes before they are whole numbers and short texts.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from grader.base.names import handed_in_name, spelled_out
from grader.findings import KINDS, Finding
from grader.programs.trace.events import (
    NO_COUNTERS,
    AccessEvent,
    ApiError,
    BranchEvent,
    Dim3,
    ExecutedEvent,
    KernelEvent,
    LaunchesEvent,
    MemcpyEvent,
    MemsetEvent,
    ReuseEvent,
    Times,
    Trace,
    TracerError,
)
from grader.sandbox import quarantine

MAX_FILE_BYTES = 768 << 20
MAX_EVENTS = 2_000_000
"""More than an honest program needs. A program that launches a kernel for each pair of 32 x 32 tiles, in 100 attentions
over 4096 keys, makes 1.6 million launches and a trace of about 550 MB."""
MAX_LINES = 1_000_000
"""The CUPTI tracer writes equal launches in one line, the emulator each in its own, at most 500,000; a counted run of
54,000 launches has 110 counters in each, which is MAX_COUNTERS."""
MAX_FINDINGS = 300
"""Findings that are kept. The emulator writes at most 100; lines beyond this limit count as unknown."""
MAX_CPU_S = 20.0
"""A million lines take 8 s."""
MAX_LINE_BYTES = 64 << 10
MAX_NAMES = 10_000
"""Limit on different kernels' names: what is computed of a trace is often computed for each kernel."""
MAX_TEXT = 4096
"""Characters kept of a name or message; mangled template names can have thousands."""
MAX_TEXT_IN_ALL = 32 << 20
"""Limit on the characters of all names and messages; each kernel name counts once. A character can take four bytes of
memory."""
MAX_COUNTER_NAMES = 1000
"""Limit on different names of counters; the emulator has about 110."""
MAX_COUNTERS = 6_000_000
"""Limit on the counters of all events together. An honest trace has about 110 counters per launch; each takes about 70
bytes of memory."""
_MAX_INT = 2**63 - 1
_MAX_THREADS_PER_BLOCK = 1024
_MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_EXECUTED = 2_000_000
"""Limit on the lines of PTX of all `ExecutedEvent`s together, since readers count each line."""
_COUNTER = re.compile(r"[a-z0-9_]{1,64}")
_FILES = ("allocated_file", "other_file")
_WITHOUT_OWN_TEXT = ("kernel", "memcpy", "memset")
"""Kinds of events that a trace can have millions of. Their only text is the names of kernels, which repeat."""
_LAUNCH = ("registers", "static_shared_bytes", "dynamic_shared_bytes", "local_bytes", "stream")


class _Malformed(Exception):
    pass


def read_received(file: IO[bytes], *, max_bytes: int = MAX_FILE_BYTES) -> Trace:
    """The trace in `file`, which holds what the grader received and is positioned at its beginning."""
    building, skipped, until = _Building(), False, time.thread_time() + MAX_CPU_S
    left, number = max_bytes, 0
    while left > 0 and not building.malformed_lines and (line := file.readline(min(MAX_LINE_BYTES, left))):
        left -= len(line)
        number += 1
        if number % 4096 == 0 and time.thread_time() > until:
            break
        if line.endswith(b"\n"):
            if building.wants_more or b'"finding"' in line[:40]:  # the last words say why so much was launched
                building.take(line)
            else:
                skipped = True
            continue
        building.malformed_lines += 1  # too long, or cut off
        while left > 0 and line and not line.endswith(b"\n"):
            line = file.readline(min(MAX_LINE_BYTES, left))
            left -= len(line)
    return building.trace(truncated=skipped or file.read(1) != b"")


def read_trace(path: Path, *, max_bytes: int = MAX_FILE_BYTES) -> Trace:
    """The trace in the file at `path`, or an empty, incomplete trace if that is not a regular file.

    This function follows no links, and a FIFO in the file's place does not block it.
    """
    try:
        with quarantine.open_file(path.parent, path.name, _MAX_INT) as file:
            return read_received(file, max_bytes=max_bytes)
    except quarantine.Refused:
        return Trace()


_KINDS: dict[str, tuple[str, type[Any]]] = {
    "memcpy": ("memcpys", MemcpyEvent),
    "memset": ("memsets", MemsetEvent),
    "api_error": ("api_errors", ApiError),
    "access": ("accesses", AccessEvent),
    "branch": ("branches", BranchEvent),
    "launches": ("launches", LaunchesEvent),
    "executed": ("executed", ExecutedEvent),
    "reuse": ("reuse", ReuseEvent),
    "tracer_error": ("tracer_errors", TracerError),
}
"""For each kind of line: the field of `Trace` that lists its events, and their class."""


class _Building:
    def __init__(self) -> None:
        self.found: dict[str, list[Any]] = {
            name: [] for name in ("kernels", "findings", *(name for name, _ in _KINDS.values()))
        }
        self.kernels = self.found["kernels"]
        self.start: dict[str, Any] = {}
        self.starts = self.ends = 0
        self.computed_floats: bool | None = None
        self.dropped = self.malformed_lines = self.unknown_lines = self.events = self.lines = 0
        self.names: dict[str, str] = {}
        self.dims: dict[Dim3, Dim3] = {}
        self.counter_names: set[str] = set()
        self.text_left, self.counters_left, self.executed_left = MAX_TEXT_IN_ALL, MAX_COUNTERS, MAX_EXECUTED

    @property
    def wants_more(self) -> bool:
        return self.events < MAX_EVENTS and self.lines < MAX_LINES and not self.malformed_lines

    def trace(self, *, truncated: bool) -> Trace:
        events: dict[str, Any] = {name: tuple(found) for name, found in self.found.items()}
        return Trace(
            **events,
            **self.start,
            dropped=self.dropped,
            malformed_lines=self.malformed_lines,
            unknown_lines=self.unknown_lines,
            truncated=truncated,
            starts=self.starts,
            ends=self.ends,
            computed_floats=self.computed_floats,
        )

    def take(self, line: bytes) -> None:
        try:
            self.lines += 1
            entry = json.loads(line)
            if not isinstance(entry, dict):
                raise _Malformed
            if entry.get("kind") not in _WITHOUT_OWN_TEXT:
                self._keep_text(len(line))
            self._take(entry)
        except Exception:  # whatever a line contains, it is the program's doing
            self.malformed_lines += 1
        else:
            self.events += 1

    def _take(self, entry: Mapping[str, object]) -> None:
        match entry.get("kind"):
            case "kernel":
                self.kernels.append(kernel := self._kernel(entry))
                self.events += len(kernel.times) - 1
            case str(kind) if kind in _KINDS:
                name, event = _KINDS[kind]
                stride = {"stride": _stride(entry)} if kind == "access" else {}  # may be negative
                self.found[name].append(self._possible(_event(event, entry, **stride)))
            case "finding":
                self._finding(entry)
            case "start":
                self._start(entry)
            case "end":
                self.dropped += _count(entry, "dropped")
                self.ends += 1
                if "computed_floats" in entry:
                    self.computed_floats = bool(self.computed_floats) or _count(entry, "computed_floats") > 0
            case str():
                self.unknown_lines += 1
            case _:
                raise _Malformed

    def _possible(self, event: Any) -> Any:
        """The event, if its numbers can be those of a run: others divide by some of them."""
        match event:
            case LaunchesEvent():
                self._shared(event.entry, event.grid, event.block)
                if event.count < 1 or event.streams < 1:
                    raise _Malformed
            case AccessEvent():
                if event.requests < 1:
                    raise _Malformed
            case ExecutedEvent():
                self.executed_left -= event.last - event.first + 1
                if event.last < event.first or self.executed_left < 0:
                    raise _Malformed
        return event

    def _finding(self, entry: Mapping[str, object]) -> None:
        facts, kind = entry.get("facts"), _text(entry, "is")
        if not isinstance(facts, dict):
            raise _Malformed
        if kind not in KINDS or len(self.found["findings"]) == MAX_FINDINGS:
            self.unknown_lines += 1
            return
        places = {name: handed_in_name(value) for name in _FILES if isinstance(value := facts.get(name), str)}
        fields = {name: entry.get(name) for name in ("kernel", "block", "thread", "line")}
        file = entry.get("file")
        fields["file"] = handed_in_name(file) if isinstance(file, str) else None
        self.found["findings"].append(Finding.from_facts(kind, {**facts, **places}, **fields))

    def _start(self, entry: Mapping[str, object]) -> None:
        start = {"engine": _text(entry, "engine"), "clock_ns": _count(entry, "clock_ns")}
        self.starts += 1
        self.start = self.start or start

    def _keep_text(self, characters: int) -> None:
        self.text_left -= characters
        if self.text_left < 0:
            raise _Malformed

    def _shared(self, name: str, grid: Dim3, block: Dim3) -> tuple[str, Dim3, Dim3]:
        """The name, grid and block as objects that all equal launches share, to save memory."""
        if name not in self.names:
            if len(self.names) == MAX_NAMES:
                raise _Malformed
            self._keep_text(len(name))
        x, y, z = block
        if not 0 < x * y * z <= _MAX_THREADS_PER_BLOCK or not all(
            0 < n <= m for n, m in zip(grid, _MAX_GRID, strict=True)
        ):
            raise _Malformed
        return self.names.setdefault(name, name), self.dims.setdefault(grid, grid), self.dims.setdefault(block, block)

    def _kernel(self, entry: Mapping[str, object]) -> KernelEvent:
        name, grid, block = self._shared(_text(entry, "name"), _dim3(entry, "grid"), _dim3(entry, "block"))
        counters = _counters(entry.get("counters", {}))
        self.counters_left -= len(counters)
        self.counter_names |= counters.keys()
        if self.counters_left < 0 or len(self.counter_names) > MAX_COUNTER_NAMES:
            raise _Malformed
        sizes = (_count(entry, field) for field in _LAUNCH)
        return KernelEvent._make((name, grid, block, *sizes, _times(entry), counters))


def _event(kind: Any, entry: Mapping[str, object], **known: object) -> Any:
    """An event with the fields of `entry`, each read according to its type in `events`."""
    for name, read in _readers(kind):
        if name not in known:
            known[name] = read(entry, name)
    event = kind(**known)
    if getattr(event, "end_ns", 0) < getattr(event, "start_ns", 0):
        raise _Malformed
    return event


@cache
def _readers(kind: Any) -> tuple[tuple[str, Callable[[Mapping[str, object], str], object]], ...]:
    """The fields of a class of events, each with the function that reads it."""
    return tuple((name, _reader(form)) for name, form in get_type_hints(kind).items())


def _reader(form: Any) -> Callable[[Mapping[str, object], str], object]:
    if get_origin(form) is Literal:
        return lambda entry, name: _one_of(entry, name, get_args(form))
    plain = {int: _count, str: _text, Dim3: _dim3, tuple[int, ...]: _numbers}
    if form in plain:
        return plain[form]
    inner = _reader(next(each for each in get_args(form) if each is not type(None)))
    return lambda entry, name: None if entry.get(name) is None else inner(entry, name)


def _stride(entry: Mapping[str, object]) -> int | None:
    value = entry.get("stride")
    if value is not None and (type(value) is not int or abs(value) > _MAX_INT):
        raise _Malformed
    return value


def _whole(value: object) -> int:
    """A whole number in 0 .. 2^63 - 1."""
    if type(value) is not int or not 0 <= value <= _MAX_INT:
        raise _Malformed
    return value


def _count(entry: Mapping[str, object], key: str) -> int:
    return _whole(entry.get(key))


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise _Malformed
    # A lone surrogate is legal JSON and cannot be printed; control characters would reach a terminal.
    return spelled_out(value[:MAX_TEXT])


def _one_of(entry: Mapping[str, object], key: str, allowed: tuple[Any, ...]) -> Any:
    value = entry.get(key)
    if not isinstance(value, str) or value not in allowed:
        raise _Malformed
    return value


def _dim3(entry: Mapping[str, object], key: str) -> Dim3:
    value = entry.get(key)
    if not isinstance(value, list) or len(value) != 3:
        raise _Malformed
    x, y, z = (_whole(part) for part in value)
    return x, y, z


def _times(entry: Mapping[str, object]) -> Times:
    """The times of a kernel's launches: `start_ns` and `end_ns` of the first, then in `more` for each further one how
    long after the start before it started, and how long it took."""
    start, end, more = _count(entry, "start_ns"), _count(entry, "end_ns"), entry.get("more", [])
    if end < start or not isinstance(more, list) or len(more) % 2 or start + sum(map(_whole, more)) > _MAX_INT:
        raise _Malformed
    steps = np.array([0, end - start, *more], np.int64).reshape(-1, 2)
    starts = start + np.cumsum(steps[:, 0])
    return np.stack([starts, starts + steps[:, 1]], axis=1)


def _numbers(entry: Mapping[str, object], key: str) -> tuple[int, ...]:
    value = entry.get(key)
    if not isinstance(value, list) or len(value) > 64:
        raise _Malformed
    return tuple(map(_whole, value))


def _counters(value: object) -> Mapping[str, float]:
    if not isinstance(value, dict) or len(value) > 256:
        raise _Malformed
    for name, number in value.items():
        if not _COUNTER.fullmatch(name) or type(number) not in (int, float) or not 0 <= number <= _MAX_INT:
            raise _Malformed
    return {sys.intern(name): number for name, number in value.items()} if value else NO_COUNTERS
