"""Follows a Python program's values from its input to the device, and from the device to its output.

Kernels are meant to do the work. The processor may only move values: read them, change their shape, order or type, and
copy them to the device and back. This module sees every array that the program copies, every launch, and the output
file, and counts the *unexplained values*:

- values copied to the device that are not in the input or in an array copied from the device, in long runs at regular
  places; arrays are also searched for in another order of their axes, and as another floating-point type,
- numbers given to launches, places and sizes of arrays, because they can carry values to a kernel too,
- values of the output that are in no array copied from the device, searched for in the same way.

A few are normal, such as sizes, a scale, or padding. If there are more, the grader runs the program again on another
input, and compares all that both runs copied and launched (`grader.grading.provenance`). So every run makes such a
record, even if nobody reads it: else a program could see in which runs it is watched.
"""

from __future__ import annotations

import json
import mmap
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.python.layout import MOST_RECORDED_BYTES, OF_LAUNCHES_BYTES
from grader.python.value_search import Search
from grader.python.value_sources import TYPE_BYTES, TYPES, UNSIGNED, Source

_PIECE_BYTES, _WORD_BYTES, _MOST_FINDS = 64, 4, 8
"""How a copy of the input's next piece is found: by so many bytes, at a multiple of some, and not again if there are
others between them."""
_BLOCK_BYTES = 1 << 18
_OF_A_KERNEL = 1000
"""A kernel that is compiled in the run counts as so many unexplained numbers."""
_NOTHING = np.empty(0, np.uint8)
CUT = b"{}\n"
"""The end of a record that would become too large. Nothing that a record may hold."""
secret = secrets.randbits(63)
"""Stands for the addresses of arrays in a record. It is the same in runs with the same seed."""


@dataclass
class _Kind:
    """The unexplained values of one kind: how many, and how many come from each line."""

    count: int = 0
    lines: dict[int, int] = field(default_factory=dict)

    def add(self, count: int, line: int) -> None:
        self.count += count
        self.lines[line] = self.lines.get(line, 0) + count

    def event(self) -> dict[str, int]:
        return {"count": self.count, "line": max(self.lines, key=lambda line: self.lines[line], default=0)}


class Follower:
    """Follows one run of a program. `line` returns the line of the program that is running. Everything is written to
    the descriptor `record`, which holds the times of the run with which this one will be compared, if there is one."""

    def __init__(self, input_file: Path, output_file: Path, line: Callable[[], int], record: int) -> None:
        self._output, self._line, self._record = output_file, line, record
        self._output_line = 0
        self._room, self._search = MOST_RECORDED_BYTES, Search()
        self._times: Iterator[float] = iter(json.loads(_rest(record) or b"[]"))
        self._kinds = {"uploads": _Kind(), "arguments": _Kind(), "written": _Kind()}
        self._downloads: list[Source] = []
        self._sources: list[Source] = []
        """The input and all downloads."""
        self._numbers: set[object] = set()
        self._input: Source | None = None
        self._next, self._finds = 0, _MOST_FINDS
        if input_file.is_file() and input_file.stat().st_size:
            with input_file.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._input = Source(np.frombuffer(content, np.uint8), "")
            self._sources.append(self._input)

    def uploaded(self, values: NDArray[Any], type_: str) -> None:
        """`values` are about to be copied to the device as values of `type_`, one of Triton's names."""
        line = self._line()
        self._write("uploads", line, values, type_)
        count = 0
        if not self._continues(values):
            count = self._search.in_upload(values, type_, self._sources)
        self._kinds["uploads"].add(count * max(1, values.itemsize // 4), line)

    def downloaded(self, values: NDArray[Any], type_: str = "") -> None:
        """`values` were copied from the device, and will not change. By default, their type is that of the array."""
        type_ = type_ or next((name for name, of in TYPES.items() if values.dtype == of), "")
        self._write("downloads", self._line(), values, type_)
        source = Source(np.ascontiguousarray(values), type_)
        self._sources.append(source)
        self._downloads.append(source)

    def output_opened(self) -> None:
        """The program is about to open the output file."""
        self._output_line = self._line() or self._output_line

    def launched(self, numbers: Iterable[object]) -> None:
        """A kernel or a copy was started, or memory allocated, with these numbers and names."""
        given, line = list(numbers), self._line()
        self._write("arguments", line, numbers=given)
        new = {number for number in given if number not in self._numbers}
        self._numbers |= new
        large = sum(isinstance(number, tuple) and TYPE_BYTES[number[0]] > 4 and number[1] >> 32 > 0 for number in new)
        self._kinds["arguments"].add(1 + len(new) + large, line)

    def timed(self, ms: float) -> float:
        """The time that the program shall see if it has measured `ms`: in a run for comparison, that of the first run,
        because programs choose by times, as autotune does."""
        ms = next(self._times, ms)
        self._write("times", self._line(), numbers=[ms])
        return ms

    def loaded(self, code: str, *, compiled_before: bool) -> None:
        """A kernel was loaded; `code` stands for it. One that was not `compiled_before` the run, by the build, which
        had only zeros, may have values for constants."""
        self._write("arguments", self._line(), numbers=["load", code])
        if not compiled_before:
            self._kinds["arguments"].add(_OF_A_KERNEL, self._line())

    def report(self) -> dict[str, object]:
        """The event for the trace, at the end of the run. Replaces the output by a copy, which a process that still
        has the file open cannot change any more."""
        if self._output.is_file():
            written = self._output.read_bytes()
            content = np.frombuffer(written, np.uint8)
            self._write("written", self._output_line, content)
            if count := self._search.in_output(content, self._downloads):
                self._kinds["written"].add(count, self._output_line)
            copy = self._output.with_name(secrets.token_hex(16))
            with copy.open("xb") as file:
                file.write(written)
            copy.replace(self._output)
        return {"kind": "provenance", **{name: kind.event() for name, kind in self._kinds.items()}}

    def _continues(self, values: NDArray[Any]) -> bool:
        """Whether the values are those of the input after the last ones that were copied, as if row by row."""
        content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        if self._input is None or not content.size:
            return False
        next_ = self._input.values[self._next : self._next + content.size]
        blocks = (slice(begin, begin + _BLOCK_BYTES) for begin in range(0, content.size, _BLOCK_BYTES))
        if found := all(np.array_equal(next_[block], content[block]) for block in blocks):
            self._next += content.size
        elif self._finds > 0:
            self._finds -= 1
            size = min(_WORD_BYTES, values.itemsize)
            place = self._search.place(content[:_PIECE_BYTES].view(UNSIGNED[size]), self._input.bits(size))
            self._next = place * size + content.size
        return found

    def _write(
        self, kind: str, line: int, values: NDArray[Any] = _NOTHING, type_: str = "", numbers: Sequence[object] = ()
    ) -> None:
        if self._room < 0:
            return
        omitted = values.nbytes > self._room - OF_LAUNCHES_BYTES
        content = _NOTHING if omitted else np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        heading = {"kind": kind, "type": type_, "size": values.itemsize, "bytes": values.nbytes, "omitted": omitted}
        text = json.dumps({**heading, "numbers": numbers, "line": line}).encode() + b"\n"
        self._room -= len(text) + content.nbytes
        try:
            for part in (text, content.data) if self._room >= 0 else (CUT,):
                left = memoryview(part)
                while left:
                    left = left[os.write(self._record, left) :]
        except OSError:  # the disk is full: the record is the grader's concern, and the program goes on
            self._room = -1


def _rest(descriptor: int) -> bytes:
    """What can be read from it."""
    parts = iter(lambda: os.read(descriptor, 1 << 20), b"")
    return b"".join(parts)
