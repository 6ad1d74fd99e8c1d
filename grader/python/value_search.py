"""Searches for the values of an array in those that a program may move, in long runs at regular places."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.python.value_sources import FLOAT_BYTES, TYPE_BYTES, UNSIGNED, Bits, Source

_NEEDLE_BYTES = 16
"""So many equal bytes are taken for moved values, not for a coincidence."""
_MOST_RUNS = 1 << 17
_SEARCHED_BYTES, _SEARCHED_IN_ALL_BYTES = 1 << 29, 1 << 33
"""Limits on the bytes searched for the runs of one array, a second or less, and of all arrays of a run."""
_PER_SOURCE_BYTES = 1 << 14
"""What looking into one source costs at least, in bytes searched."""
_FEW = 16
"""An array with at most so many unexplained values needs no further search."""
_PROBES = 8

Try = tuple[Bits, list[Bits]]
"""Values, and the sources in which they are searched for."""


class Search:
    """The searches of one run, as far as there is time."""

    def __init__(self) -> None:
        self._left = _SEARCHED_IN_ALL_BYTES

    def unexplained(self, size: int, tries: Iterator[Try]) -> int:
        """The fewest unexplained values of all tries; all, `size`, if there is no time left. All tries but the first
        are made only if some of the values are found."""
        if self._left <= 0:
            return size
        best: int | None = None
        for values, sources in tries:
            if best is None or (self._left > 0 and _promising(values, sources)):
                self._left -= _PER_SOURCE_BYTES * len(sources)
                found = self._by_search(values, sources)
                best = found if best is None else min(best, found)
                if best <= _FEW:
                    break
        return best or 0

    def _by_search(self, values: Bits, sources: Sequence[Bits]) -> int:
        """The number of values that are not in runs of values of the sources at regular places. A run is regular if it
        continues where the last one ended, or leaves the same gap. Another run counts as one unexplained value, because
        its place could carry information. So does a constant that is repeated between the runs, unless it is 0, and
        each change of the length of such a repetition, or of a run before it."""
        length = max(1, _NEEDLE_BYTES // values.itemsize)
        position = unexplained = source = follows = gap = constant = repeated = moved = 0
        least = max(0, self._left - _SEARCHED_BYTES)
        runs: list[_Run] = []
        for _ in range(_MOST_RUNS):
            if period := _period(runs):
                times = _repeated(values[position:], sources[source][follows + gap :], period)
                position += times * sum(run.length for run in period)
                follows += times * (period[0].length + gap)
                runs.clear()
            if position >= len(values) or self._left <= least:
                break
            rest = values[position:]
            expected = [(source, follows), (source, follows + gap), (source + 1, 0)]
            found = [(_common(rest, sources[at][place:]), at, place) for at, place in expected if at < len(sources)]
            run, at, place = max(found, default=(0, 0, 0), key=lambda each: each[0])
            if not run and rest[0] != constant:
                places = ((_find(rest[:length], each), number) for number, each in enumerate(sources))
                place, at = next((found for found in places if found[0] >= 0), (-1, len(sources)))
                self._left -= sum(each.nbytes + _PER_SOURCE_BYTES for each in sources[: at + 1])
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
        return unexplained + len(values) - position


def upload_tries(values: NDArray[Any], type_: str, sources: Sequence[Source]) -> Iterator[Try]:
    orders = [None, *_orders(values.shape)]
    for order in orders:
        yield _flat(values, order), [source.bits(values.itemsize) for source in sources]
    if type_ in TYPE_BYTES:
        for order in orders:
            yield _flat(values, order), [bits for source in sources for bits in source.converted(type_)]


def output_tries(content: NDArray[np.uint8], downloads: Sequence[Source]) -> Iterator[Try]:
    sizes = sorted({source.values.itemsize for source in downloads}, reverse=True) or [4, 1]
    sizes = [size for size in sizes if content.size % size == 0]
    for size in sizes:
        yield content.view(UNSIGNED[size]), [source.bits(size) for source in downloads]
    for type_, size in FLOAT_BYTES.items():
        if content.size % size == 0:
            yield content.view(UNSIGNED[size]), [bits for source in downloads for bits in source.converted(type_)]
    orders = dict.fromkeys(order for source in downloads for order in _orders(source.values.shape))
    for size, order in itertools.product(sizes, orders):
        ordered = [source for source in downloads if source.values.ndim == len(order)]
        yield content.view(UNSIGNED[size]), [source.bits(size, order) for source in ordered]


def _orders(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """The other orders of an array's axes that change the order of its values; at most those of four axes."""
    long = [axis for axis, length in enumerate(shape) if length > 1]
    if not 2 <= len(long) <= 4:
        return []
    short = [axis for axis, length in enumerate(shape) if length <= 1]
    return [(*order, *short) for order in itertools.permutations(long) if order != tuple(long)]


def _flat(values: NDArray[Any], order: tuple[int, ...] | None) -> Bits:
    moved = values if order is None else values.transpose(order)
    return np.ascontiguousarray(moved).reshape(-1).view(UNSIGNED[values.itemsize])


def _promising(values: Bits, sources: Sequence[Bits]) -> bool:
    """Whether some of the values, taken from several places, are in a source. Equal values prove nothing."""
    length = max(1, _NEEDLE_BYTES // values.itemsize)
    for begin in range(0, len(values), max(1, len(values) // _PROBES)):
        part = values[begin : begin + length]
        if (part != part[0]).any() and any(_find(part, source) >= 0 for source in sources):
            return True
    return False


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
