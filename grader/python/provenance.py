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

import itertools
import json
import mmap
import os
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.python.layout import MOST_RECORDED_BYTES, OF_LAUNCHES_BYTES

Bits = NDArray[Any]
"""A flat array of unsigned integers: the bits of values."""
_NEEDLE_BYTES = 16
"""So many equal bytes are taken for moved values, not for a coincidence."""
_MOST_RUNS = 1 << 17
_SEARCHED_BYTES, _SEARCHED_IN_ALL_BYTES = 1 << 29, 1 << 33
"""Limits on the bytes searched for the runs of one array, a second or less, and of all arrays of a run."""
_PIECE_BYTES, _MOST_FINDS = 64, 8
"""How a copy of the input's next piece is found: by so many bytes, and not again if there are others between them."""
_PER_SOURCE_BYTES = 1 << 14
"""What looking into one source costs at least, in bytes searched."""
_FEW = 16
"""An array with at most so many unexplained values needs no further search."""
_OF_A_KERNEL = 1000
"""A kernel that is compiled in the run counts as so many unexplained numbers."""
_PROBES = 8
_NOTHING = np.empty(0, np.uint8)
CUT = b"{}\n"
"""The end of a record that would become too large. Nothing that a record may hold."""
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_TYPES: dict[str, Any] = {
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "int1": np.bool_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
FLOAT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8}
TYPE_BYTES = {"bf16": 2, **{name: np.dtype(of).itemsize for name, of in _TYPES.items()}}
"""The types that values are converted from and to, by Triton's names."""
secret = secrets.randbits(63)
"""Stands for the addresses of arrays in a record. It is the same in runs with the same seed."""

follower: Follower | None = None
"""Follows this process's program; None while kernels are only compiled."""


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
        self._room, self._left = MOST_RECORDED_BYTES, _SEARCHED_IN_ALL_BYTES
        self._times: Iterator[float] = iter(json.loads(_rest(record) or b"[]"))
        self._kinds = {"uploads": _Kind(), "arguments": _Kind(), "written": _Kind()}
        self._downloads: list[Source] = []
        self._sources: list[Source] = []
        """The input and all downloads."""
        self._numbers: set[object] = set()
        self._input: mmap.mmap | None = None
        self._next, self._finds = 0, _MOST_FINDS
        if input_file.is_file() and input_file.stat().st_size:
            with input_file.open("rb") as file:
                self._input = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._sources.append(Source(np.frombuffer(self._input, np.uint8), ""))

    def uploaded(self, values: NDArray[Any], type_: str) -> None:
        """`values` are about to be copied to the device as values of `type_`, one of Triton's names."""
        line = self._line()
        self._write("uploads", line, values, type_)
        count = 0
        if not self._continues(values):
            count = self._searched(values.size, _upload_tries(values, type_, self._sources))
        self._kinds["uploads"].add(count * max(1, values.itemsize // 4), line)

    def downloaded(self, values: NDArray[Any]) -> None:
        """`values` were copied from the device."""
        type_ = next((name for name, of in _TYPES.items() if values.dtype == of), "")
        self._write("downloads", self._line(), values, type_)
        source = Source(values.copy(), type_)
        self._sources.append(source)
        self._downloads.append(source)

    def opened(self, path: str) -> None:
        """The program is about to open a file."""
        if path == str(self._output):
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

    def compiling(self) -> None:
        """A kernel is compiled that the build, which had only zeros, did not need: its constants may be values."""
        self._kinds["arguments"].add(_OF_A_KERNEL, self._line())

    def report(self) -> dict[str, object]:
        """The event for the trace, at the end of the run. Replaces the output by a copy, which a program that still
        has the file open cannot change any more. Values in tensors of PyTorch are not followed."""
        if "torch" not in sys.modules and self._output.is_file():
            written = self._output.read_bytes()
            content = np.frombuffer(written, np.uint8)
            self._write("written", self._output_line, content)
            if count := self._searched(content.size, _output_tries(content, self._downloads)):
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
        if found := self._input[self._next : self._next + content.size] == content.data:
            self._next += content.size
        elif self._finds > 0:
            self._finds -= 1
            self._next = self._input.find(content[:_PIECE_BYTES].tobytes()) + content.size
        return found

    def _searched(self, size: int, tries: Iterator[_Try]) -> int:
        """The number of unexplained values, of `size`, as far as there is time to search for them."""
        if self._left <= 0:
            return size
        count, self._left = _unexplained(tries, self._left)
        return count

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


# ---- where values may come from -----------------------------------------------------------------------------------


@dataclass
class Source:
    """Values that the program may move: `values` of type `type`, or of an unknown type if that is ''."""

    values: NDArray[Any]
    type: str
    _converted: dict[tuple[str, str, int], Bits] = field(default_factory=dict)

    def bits(self, size: int, order: tuple[int, ...] | None = None) -> Bits:
        """The stored bits, `size` bytes each, with the axes in this order."""
        values = self.values if order is None else self.values.transpose(order)
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        return flat[: len(flat) // size * size].view(_UNSIGNED[size])

    def converted(self, to: str) -> Iterator[Bits]:
        """The values as another type, from each type that they may have: those of an unknown type may be
        floating-point numbers. They become bfloat16 in each of the ways in which programs round: to nearest with ties
        to even, cut off, to nearest with ties away from 0."""
        for of in (self.type,) if self.type else FLOAT_BYTES if to in FLOAT_BYTES else ():
            for rounding in (0, 1, 2) if to == "bf16" else (0,):
                if of != to:
                    if (key := (of, to, rounding)) not in self._converted:
                        self._converted[key] = _convert(self.bits(TYPE_BYTES[of]), of, to, rounding)
                    yield self._converted[key]


def _convert(bits: Bits, of: str, to: str, rounding: int) -> Bits:
    with np.errstate(all="ignore"):
        values = (bits.astype(np.uint32) << 16).view(np.float32) if of == "bf16" else bits.view(_TYPES[of])
        if to != "bf16":
            return values.astype(_TYPES[to]).view(_UNSIGNED[TYPE_BYTES[to]])
        whole = values.astype(np.float32).view(np.uint32)
        added = (0x7FFF + (whole >> 16 & 1), 0, 0x8000)[rounding]
        return ((whole + added) >> 16).astype(np.uint16)


_Try = tuple[Bits, list[Bits]]
"""Values, and the sources in which they are searched for."""


def _upload_tries(values: NDArray[Any], type_: str, sources: Sequence[Source]) -> Iterator[_Try]:
    orders = [None, *_orders(values.shape)]
    for order in orders:
        yield _flat(values, order), [source.bits(values.itemsize) for source in sources]
    if type_ in TYPE_BYTES:
        for order in orders:
            yield _flat(values, order), [bits for source in sources for bits in source.converted(type_)]


def _output_tries(content: NDArray[np.uint8], downloads: Sequence[Source]) -> Iterator[_Try]:
    sizes = sorted({source.values.itemsize for source in downloads}, reverse=True) or [4, 1]
    sizes = [size for size in sizes if content.size % size == 0]
    for size in sizes:
        yield content.view(_UNSIGNED[size]), [source.bits(size) for source in downloads]
    for type_, size in FLOAT_BYTES.items():
        if content.size % size == 0:
            yield content.view(_UNSIGNED[size]), [bits for source in downloads for bits in source.converted(type_)]
    orders = dict.fromkeys(order for source in downloads for order in _orders(source.values.shape))
    for size, order in itertools.product(sizes, orders):
        ordered = [source for source in downloads if source.values.ndim == len(order)]
        yield content.view(_UNSIGNED[size]), [source.bits(size, order) for source in ordered]


def _orders(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """The other orders of an array's axes that change the order of its values; at most those of four axes."""
    long = [axis for axis, length in enumerate(shape) if length > 1]
    if not 2 <= len(long) <= 4:
        return []
    short = [axis for axis, length in enumerate(shape) if length <= 1]
    return [(*order, *short) for order in itertools.permutations(long) if order != tuple(long)]


def _flat(values: NDArray[Any], order: tuple[int, ...] | None) -> Bits:
    moved = values if order is None else values.transpose(order)
    return np.ascontiguousarray(moved).reshape(-1).view(_UNSIGNED[values.itemsize])


# ---- finding them -------------------------------------------------------------------------------------------------


def _unexplained(tries: Iterator[_Try], left: int) -> tuple[int, int]:
    """The fewest unexplained values of all tries, and what is left of the bytes that may be searched. All tries but the
    first are made only if some of the values are found."""
    best: int | None = None
    for values, sources in tries:
        if best is None or (left > 0 and _promising(values, sources)):
            left -= _PER_SOURCE_BYTES * len(sources)
            found, left = _by_search(values, sources, left)
            best = found if best is None else min(best, found)
            if best <= _FEW:
                break
    return best or 0, left


def _promising(values: Bits, sources: Sequence[Bits]) -> bool:
    """Whether some of the values, taken from several places, are in a source. Equal values prove nothing."""
    length = max(1, _NEEDLE_BYTES // values.itemsize)
    for begin in range(0, len(values), max(1, len(values) // _PROBES)):
        part = values[begin : begin + length]
        if (part != part[0]).any() and any(_find(part, source) >= 0 for source in sources):
            return True
    return False


def _by_search(values: Bits, sources: Sequence[Bits], left: int) -> tuple[int, int]:
    """The number of values that are not in runs of values of the sources at regular places, and what is left of the
    bytes that may be searched. A run is regular if it continues where the last one ended, or leaves the same gap.
    Another run counts as one unexplained value, because its place could carry information. So does a constant that is
    repeated between the runs, unless it is 0, and each change of the length of such a repetition, or of a run before
    it."""
    length = max(1, _NEEDLE_BYTES // values.itemsize)
    position = unexplained = source = follows = gap = constant = repeated = moved = 0
    least = max(0, left - _SEARCHED_BYTES)
    runs: list[_Run] = []
    for _ in range(_MOST_RUNS):
        if period := _period(runs):
            times = _repeated(values[position:], sources[source][follows + gap :], period)
            position += times * sum(run.length for run in period)
            follows += times * (period[0].length + gap)
            runs.clear()
        if position >= len(values) or left <= least:
            break
        rest = values[position:]
        expected = [(source, follows), (source, follows + gap), (source + 1, 0)]
        found = [(_common(rest, sources[at][place:]), at, place) for at, place in expected if at < len(sources)]
        run, at, place = max(found, default=(0, 0, 0), key=lambda each: each[0])
        if not run and rest[0] != constant:
            places = ((_find(rest[:length], each), number) for number, each in enumerate(sources))
            place, at = next((found for found in places if found[0] >= 0), (-1, len(sources)))
            left -= sum(each.nbytes + _PER_SOURCE_BYTES for each in sources[: at + 1])
            if place >= 0:
                run = _common(rest, sources[at][place:])
                unexplained += 1
        if run:
            gap = place - follows if at == source else 0
            source, follows = at, place + run
            runs.append(_Run(run, gap))
        else:
            run = _common(rest, np.broadcast_to(rest[:1], rest.shape))
            unexplained += bool(rest[0] != constant) + bool(run != repeated and repeated)
            before = runs[-1].length if runs and runs[-1].constant is None else moved
            unexplained += bool(before != moved and moved)
            constant, repeated, moved = int(rest[0]), run, before
            runs.append(_Run(run, 0, constant))
        position += run
    return unexplained + len(values) - position, left


@dataclass(frozen=True)
class _Run:
    """Adjacent values of an array: those of a source, `gap` values after the last run of that source, or a constant."""

    length: int
    gap: int
    constant: int | None = None


def _period(runs: Sequence[_Run]) -> Sequence[_Run]:
    """The last run of a source, with the constant after it if there is one, if the runs before were the same."""
    for size in (1, 2):
        period = runs[-size:]
        alternates = [run.constant is None for run in period] == [True, False][:size]
        if alternates and len(runs) >= 2 * size and period == runs[-2 * size : -size]:
            return period
    return ()


def _repeated(values: Bits, source: Bits, period: Sequence[_Run]) -> int:
    """How many times a period is repeated at the beginning of `values`."""
    moved, length = period[0], sum(run.length for run in period)
    step = moved.length + moved.gap
    if step <= 0 or len(source) < moved.length:
        return 0
    times = min(len(values) // length, (len(source) - moved.length) // step + 1)
    rows = values[: times * length].reshape(times, length)
    strides = step * source.itemsize, source.itemsize
    same = (rows[:, : moved.length] == np.lib.stride_tricks.as_strided(source, (times, moved.length), strides)).all(1)
    if len(period) > 1:
        same &= (rows[:, moved.length :] == period[1].constant).all(1)
    return times if same.all() else int(np.argmin(same))


def _common(first: Bits, second: Bits) -> int:
    """The number of values by which both begin."""
    length, begin, step = min(len(first), len(second)), 0, 64
    while begin < length:
        end = min(length, begin + step)
        if not np.array_equal(first[begin:end], second[begin:end]):
            return begin + int(np.argmax(first[begin:end] != second[begin:end]))
        begin, step = end, min(step * 4, 1 << 20)
    return length


def _find(wanted: Bits, source: Bits) -> int:
    """The first place of `wanted` in `source`; -1 if it is not there."""
    size, block, text = source.itemsize, 1 << 20, wanted.tobytes()
    for begin in range(0, len(source), block):
        part = source[begin : begin + block + len(wanted) - 1].tobytes()
        at = part.find(text)
        while at >= 0 and at % size:
            at = part.find(text, at + 1)
        if at >= 0:
            return begin + at // size
    return -1
