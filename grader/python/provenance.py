"""Follows a Python program's values from its input to the device, and from the device to its output.

Kernels are meant to do the work. The processor may only move values: read them, change their shape, order or type, and
copy them to the device and back. This module sees every array that the program copies, every launch, and the output
file, and counts the *unexplained values*:

- values copied to the device that are neither in the input nor in an array copied from the device,
- numbers given to launches, because they can carry values to a kernel too,
- values of the output that are in no array copied from the device.

A few are normal, such as sizes, a scale, or padding. Many are normal too if they do not depend on the input's values,
as in a mask. So the report has two hashes for each kind. One is of the unexplained arrays' values. The other is of
their places: each value that occurs in a source counts as the place where it occurs first. A second run on an input in
which every value was replaced by another (`grader.grading.provenance`) has the same values if they do not depend on the
input, and the same places if they were only moved.
"""

from __future__ import annotations

import hashlib
import itertools
import mmap
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[Any]
"""A flat array of unsigned integers: the bits of values."""
_WINDOW_BYTES = 8
"""So many equal bytes are taken for moved values, not for a coincidence."""
_MOST_RUNS = 1000
"""Limit on the runs of equal values for which an array is searched one after the other, without an index."""
_SEARCHED_BYTES = 1 << 29
"""Limit on the bytes searched in this way for one array: a second or less."""
_MOST_INDEXED = 1 << 25
"""Sources and arrays with more values are not indexed, which would take more than a few seconds."""
_MOST_IRREGULAR = 16
"""An array in which all values are found, in at most so many runs at irregular places, does not enter the hashes."""
_TOO_LARGE = b"too large"
_PROBES = 8
_UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_FLOATS = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}
_FLOAT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8}

follower: Follower | None = None
"""Follows this process's program; None while kernels are only compiled."""


@dataclass
class _Kind:
    """The unexplained values of one kind."""

    count: int = 0
    line: int = 0
    """The line that most of them come from."""
    most: int = 0
    unfollowed: int = 0
    """How many of them are in arrays too large to search in full."""
    values: Any = field(default_factory=hashlib.sha256)
    places: Any = field(default_factory=hashlib.sha256)

    def add(self, count: int, line: int) -> None:
        self.count += count
        if count > self.most:
            self.most, self.line = count, line

    def event(self) -> dict[str, object]:
        hashes = {"values": self.values.hexdigest(), "places": self.places.hexdigest()}
        return {"count": self.count, "line": self.line, "unfollowed": self.unfollowed, **hashes}


class Follower:
    """Follows one run of a program. `line` returns the line of the program that is running."""

    def __init__(self, input_file: Path, output_file: Path, line: Callable[[], int]) -> None:
        self._output, self._line = output_file, line
        self._output_line = 0
        self._kinds = {"uploads": _Kind(), "arguments": _Kind(), "written": _Kind()}
        self._downloads: list[_Source] = []
        self._sources: list[_Source] = []
        """The input and all downloads."""
        self._numbers: set[str] = set()
        self._seen: set[bytes] = set()
        self._launched = ""
        if input_file.is_file() and input_file.stat().st_size:
            with input_file.open("rb") as file:
                content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            self._sources.append(_Source(np.frombuffer(content, np.uint8), ""))

    def uploaded(self, values: NDArray[Any], type_: str) -> None:
        """`values` are about to be copied to the device as values of `type_`, one of Triton's names."""
        self._add("uploads", values, _upload_tries(values, type_, self._sources), self._line())

    def downloaded(self, values: NDArray[Any]) -> None:
        """`values` were copied from the device."""
        names = {np.dtype(of): name for name, of in _FLOATS.items()}
        source = _Source(values.copy(), names.get(values.dtype, ""))
        self._sources.append(source)
        self._downloads.append(source)

    def opened(self, path: str) -> None:
        """The program is about to open a file."""
        if path == str(self._output):
            self._output_line = self._line() or self._output_line

    def launched(self, numbers: Iterable[object]) -> None:
        """A kernel, or a copy, was started with these numbers. Repeating it carries nothing."""
        words = [repr(number) for number in numbers]
        launch = "\0".join(words)
        if launch == self._launched:
            return
        kind, self._launched = self._kinds["arguments"], launch
        kind.add(1 + len(set(words) - self._numbers), self._line())
        kind.values.update(launch.encode())
        kind.places.update(launch.encode())
        self._numbers.update(words)

    def report(self) -> dict[str, object]:
        """The event for the trace, at the end of the run. Replaces the output by a copy, which a program that still
        has the file open cannot change any more. Values in tensors of PyTorch are not followed."""
        if "torch" not in sys.modules and self._output.is_file():
            written = self._output.read_bytes()
            content = np.frombuffer(written, np.uint8)
            self._add("written", content, _output_tries(content, self._downloads), self._output_line)
            copy = self._output.with_name(f"{self._output.name}.copy")
            copy.write_bytes(written)
            copy.replace(self._output)
        return {"kind": "provenance", **{name: kind.event() for name, kind in self._kinds.items()}}

    def _add(self, name: str, values: NDArray[Any], tries: Iterator[_Try], line: int) -> None:
        kind = self._kinds[name]
        found = _explained(tries)
        if not found.places:
            kind.add(found.unexplained, line)
            return
        digest = hashlib.sha256(np.ascontiguousarray(values).data).digest()
        if digest in self._seen:
            return
        self._seen.add(digest)
        kind.add(found.unexplained, line)
        kind.values.update(digest)
        kind.places.update(digest if found.places == _TOO_LARGE else found.places)
        kind.unfollowed += found.unexplained if found.places == _TOO_LARGE else 0


# ---- where values may come from -----------------------------------------------------------------------------------


@dataclass
class _Source:
    """Values that the program may move: `values` of type `type`, or of an unknown type if that is ''."""

    values: NDArray[Any]
    type: str
    _converted: dict[tuple[str, str, bool], Bits] = field(default_factory=dict)

    def bits(self, size: int, order: tuple[int, ...] | None = None) -> Bits:
        """The stored bits, `size` bytes each, with the axes in this order."""
        values = self.values if order is None else self.values.transpose(order)
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        return flat[: len(flat) // size * size].view(_UNSIGNED[size])

    def converted(self, to: str) -> Iterator[Bits]:
        """The values as another floating-point type, from each type that they may have."""
        for of in (self.type,) if self.type else _FLOAT_BYTES:
            for truncated in (False, True) if to == "bf16" else (False,):
                if of != to and of in _FLOAT_BYTES:
                    if (key := (of, to, truncated)) not in self._converted:
                        self._converted[key] = _convert(self.bits(_FLOAT_BYTES[of]), of, to, truncated=truncated)
                    yield self._converted[key]


def _convert(bits: Bits, of: str, to: str, *, truncated: bool) -> Bits:
    with np.errstate(all="ignore"):
        values = (bits.astype(np.uint32) << 16).view(np.float32) if of == "bf16" else bits.view(_FLOATS[of])
        if to != "bf16":
            return values.astype(_FLOATS[to]).view(_UNSIGNED[_FLOAT_BYTES[to]])
        whole = values.astype(np.float32).view(np.uint32)
        rounding = 0 if truncated else 0x7FFF + (whole >> 16 & 1)
        return ((whole + rounding) >> 16).astype(np.uint16)


_Try = tuple[Bits, list[Bits]]
"""Values, and the sources in which they are searched for."""


def _upload_tries(values: NDArray[Any], type_: str, sources: Sequence[_Source]) -> Iterator[_Try]:
    orders = [None, *_orders(values.shape)]
    for order in orders:
        yield _flat(values, order), [source.bits(values.itemsize) for source in sources]
    if type_ in _FLOAT_BYTES:
        for order in orders:
            yield _flat(values, order), [bits for source in sources for bits in source.converted(type_)]


def _output_tries(content: NDArray[np.uint8], downloads: Sequence[_Source]) -> Iterator[_Try]:
    sizes = sorted({source.values.itemsize for source in downloads}, reverse=True) or [4, 1]
    sizes = [size for size in sizes if content.size % size == 0]
    for size in sizes:
        yield content.view(_UNSIGNED[size]), [source.bits(size) for source in downloads]
    for type_, size in _FLOAT_BYTES.items():
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


@dataclass(frozen=True)
class _Explained:
    """How many values were not found or are in irregular places, and a hash of all values' places: b'' if all values
    were found at once, `_TOO_LARGE` if the array is too large to search in full."""

    unexplained: int
    places: bytes = b""


def _explained(tries: Iterator[_Try]) -> _Explained:
    """The best explanation among the tries. All but the first are made only if some of the values are found at all."""
    best: _Explained | None = None
    for values, sources in tries:
        if best is not None and not _promising(values, sources):
            continue
        irregular, others = _by_search(values, sources)
        if not others and irregular <= _MOST_IRREGULAR:
            return _Explained(irregular)
        if max(len(values), sum(map(len, sources))) <= _MOST_INDEXED:
            found = _by_index(values, sources)
        else:
            found = _Explained(irregular + others, _TOO_LARGE)
        if best is None or found.unexplained < best.unexplained:
            best = found
    return best or _Explained(0)


def _promising(values: Bits, sources: Sequence[Bits]) -> bool:
    """Whether some of the values, taken from several places, are in a source. Equal values prove nothing."""
    length = max(1, 2 * _WINDOW_BYTES // values.itemsize)
    for begin in range(0, len(values), max(1, len(values) // _PROBES)):
        part = values[begin : begin + length]
        if (part != part[0]).any() and any(_find(part, source) >= 0 for source in sources):
            return True
    return False


def _by_search(values: Bits, sources: Sequence[Bits]) -> tuple[int, int]:
    """(the number of irregular runs of values of the sources, the number of other values). A run is regular if it
    continues where the last one ended, or leaves the same gap. A constant that is repeated between the runs counts as
    one other value, and 0 as none."""
    length = max(1, 2 * _WINDOW_BYTES // values.itemsize)
    position = irregular = others = source = follows = gap = constant = 0
    left = _SEARCHED_BYTES
    for _ in range(_MOST_RUNS):
        if position >= len(values) or left < 0:
            break
        rest = values[position:]
        expected = [(source, follows), (source, follows + gap), (source + 1, 0)]
        runs = [(_common(rest, sources[at][place:]), at, place) for at, place in expected if at < len(sources)]
        run, at, place = max(runs, default=(0, 0, 0), key=lambda found: found[0])
        if not run and rest[0] != constant:
            places = ((_find(rest[:length], each), number) for number, each in enumerate(sources))
            place, at = next((found for found in places if found[0] >= 0), (-1, len(sources)))
            left -= sum(each.nbytes for each in sources[: at + 1])
            if place >= 0:
                run = _common(rest, sources[at][place:])
                irregular += 1
        if run:
            gap = place - follows if at == source else 0
            source, follows = at, place + run
        else:
            run = _common(rest, np.broadcast_to(rest[:1], rest.shape))
            others += bool(rest[0] != constant)
            constant = rest[0]
        position += run
    return irregular, others + len(values) - position


def _by_index(values: Bits, sources: Sequence[Bits]) -> _Explained:
    """Like `_by_search`, for any number of runs, each at least `_WINDOW_BYTES` long; with the places of all values."""
    pool = np.concatenate([*sources, np.empty(0, values.dtype)])
    window = max(1, _WINDOW_BYTES // values.itemsize)
    covered = np.zeros(len(values), bool)
    irregular = 0
    if min(len(pool), len(values)) >= window:
        at = _first_places(_windows(values, window), _windows(pool, window))
        found = np.flatnonzero(at >= 0)
        for offset in range(window):
            covered[found + offset] = True
        begins = np.ones(len(found), bool)
        begins[1:] = (np.diff(found) != 1) | (np.diff(at[found]) != 1)
        ends = np.append(begins[1:], True)[: len(found)]
        jumps = at[found[begins]][1:] - at[found[ends]][:-1]
        irregular = int(np.count_nonzero(np.diff(jumps))) + bool(len(found))
    others = values[~covered]
    constants = int(np.count_nonzero(np.diff(others))) + bool(len(others) and others[0] != 0)
    places = _first_places(values, pool)
    places[places < 0] = ~values[places < 0].astype(np.int64)
    return _Explained(irregular + constants, hashlib.sha256(places.data).digest())


def _windows(values: Bits, length: int) -> NDArray[np.uint64]:
    """Each `length` adjacent values as one number."""
    windows = np.lib.stride_tricks.sliding_window_view(values, length)
    numbers = windows[:, 0].astype(np.uint64)
    for column in range(1, length):
        numbers = numbers << np.uint64(8 * values.itemsize) | windows[:, column]
    return numbers


def _first_places(values: Bits, pool: Bits) -> NDArray[np.int64]:
    """The first place in `pool` of each of the values; -1 if it is not there."""
    if not len(pool):
        return np.full(len(values), -1)
    known, first = np.unique(pool, return_index=True)
    at = np.searchsorted(known, values)
    at[at == len(known)] = 0
    return np.where(known[at] == values, first[at], -1)


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
