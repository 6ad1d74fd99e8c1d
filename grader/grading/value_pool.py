"""Finds the values of several runs in those that a program may move: in its input, and in what came from the device."""

from __future__ import annotations

import bisect
import itertools
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.python.value_sources import FLOAT_BYTES, TYPE_BYTES, Bits, Source, roundings

WORD_BYTES = 4
"""Single bytes are compared in groups of so many, because equal bytes prove nothing."""
_MOST_SEARCHES = 64
"""Limit on the arrays that are searched for as a whole in all sources, each in a second or less."""
_NEEDLE_BYTES = 64
_BLOCK = 1 << 20
"""So many values are compared at a time, at about 100 bytes of memory each."""
_LOOKED_UP = 1 << 22
"""So many values are looked up at a time, since all sources are read each time."""
_MOST_PAIRS = 1 << 23
"""Limit on the different values of the graded run that are found for those."""
_MOST_COMPARED = 1 << 30
"""Limit on the values of sources that are compared with those of a block, about 20 ns each."""
_FILTER_BITS = 24

Run = tuple[Bits, ...]
"""Values in each run, those of the graded run first."""


@dataclass(frozen=True)
class Way:
    """How the bytes of an array are read: as values of `size` bytes, and, if they have a `type`, as values that may
    have been converted; or as `words` of four bytes, which may begin at any byte of a source."""

    size: int
    type: str = ""
    words: bool = False

    def read(self, values: Run) -> Run:
        """The last word is filled up with zeros."""
        if self.words:
            values = tuple(np.pad(each, (0, -each.nbytes % WORD_BYTES)) for each in values)
        return tuple(each.view(f"u{self.size}") for each in values)

    @property
    def forms(self) -> tuple[int | None, ...]:
        """The ways in which a program may have all values of an array: as they are stored, or rounded in one way."""
        return (None,) if self.size == 1 or self.words else (None, *range(roundings(self.type)))


class Pool:
    """The values of sources in all runs. Each source comes with the place in the record at which it became known, in
    the order of these places. `complete` becomes false if there are too many values to look at."""

    def __init__(self, sources: Sequence[tuple[int, Sequence[Source]]]) -> None:
        self.complete = True
        self._sources = sources
        self._born = [born for born, _ in sources]
        self._searches, self._left = _MOST_SEARCHES, _MOST_COMPARED
        dice = np.random.default_rng(secrets.randbits(64))  # nobody can prepare values with equal hashes
        self._odd = dice.integers(1 << 63, size=64, dtype=np.uint64) * np.uint64(2) + np.uint64(1)

    def holds_piece(self, values: Run, place: int) -> bool:
        """Whether an array is a piece of a source, at a place that the values of another run determine: where they
        begin to differ, they are in no other place of any source. Then the program had nothing to choose."""
        changed = np.flatnonzero(values[0] != values[1])[:1]
        if self._searches <= 0 or len(values[0]) < _NEEDLE_BYTES or not len(changed):
            return False
        self._searches -= 1
        at = int(min(changed[0], len(values[0]) - _NEEDLE_BYTES))
        known = self._sources[: bisect.bisect_left(self._born, place)]
        places = itertools.islice(_places(values[1][at : at + _NEEDLE_BYTES].tobytes(), [each for _, each in known]), 2)
        match list(places):
            case [(number, found)] if found >= at:
                pieces = (each.bits(1)[found - at :][: len(values[0])] for each in known[number][1])
                return all(map(np.array_equal, pieces, values))
        return False

    def look_up(
        self, values: Run, places: NDArray[np.int64], way: Way, rounding: int | None
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which values a source holds that was known at these places, and how many the graded run might have instead,
        given those of the others. Values are held as they are, or, with a `rounding`, as another type."""
        found, choices = np.zeros(len(places), bool), np.zeros(len(places), np.int64)
        for begin in range(0, len(places), _LOOKED_UP):
            part = slice(begin, begin + _LOOKED_UP)
            others, number = np.unique(self._hash([each[part] for each in values[1:]]), return_inverse=True)
            keys, of, born = self._pairs(others, int(places[part].max()), way, rounding)
            if len(keys):
                wanted = self._key(number, values[0][part])
                at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
                found[part] = (keys[at] == wanted) & (born[at] < places[part])
                choices[part] = np.bincount(of, minlength=len(others))[number]
        return found, choices

    def _pairs(
        self, others: NDArray[np.uint64], until: int, way: Way, rounding: int | None
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
        """What the graded run has where the other runs have values with these hashes: keys in their order, the number
        of the hash, and when the values first became known."""
        wanted = np.zeros(1 << _FILTER_BITS, bool)
        wanted[others >> np.uint64(64 - _FILTER_BITS)] = True
        parts = [(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64))]
        total = 0
        for born, values in self._blocks(until, way, rounding):
            self._left -= len(born)
            hashes = self._hash(values[1:])
            at = np.flatnonzero(wanted[hashes >> np.uint64(64 - _FILTER_BITS)])
            number = np.minimum(np.searchsorted(others, hashes[at]), len(others) - 1)
            same = others[number] == hashes[at]
            at, number = at[same], number[same]
            keys, first = np.unique(self._key(number, values[0][at]), return_index=True)
            parts.append((keys, number[first], born[at][first]))
            total += len(keys)
            if total > _MOST_PAIRS:
                parts = [_distinct(parts)]
                total = len(parts[0][0])
            if total > _MOST_PAIRS or self._left < 0:
                self.complete = False
                break
        return _distinct(parts)

    def _blocks(self, until: int, way: Way, rounding: int | None) -> Iterator[tuple[NDArray[np.int64], Run]]:
        """The values of the sources that were known before `until`, and when each became known."""
        parts: list[tuple[int, Run]] = []
        size = 0
        beyond = WORD_BYTES - 1 if way.words else 0
        for born, runs in self._sources[: bisect.bisect_left(self._born, until)]:
            for begin in range(0, runs[0].values.size, _BLOCK):
                piece = [Source(run.values[begin : begin + _BLOCK + beyond], run.type) for run in runs]
                for form in _forms(piece, way, rounding):
                    parts.append((born, form))
                    size += len(form[0])
                if size >= _BLOCK:
                    yield _together(parts)
                    parts, size = [], 0
        if parts:
            yield _together(parts)

    def _hash(self, values: Sequence[Bits]) -> NDArray[np.uint64]:
        """A number for the values of several runs."""
        mixed = np.zeros(len(values[0]), np.uint64)
        for odd, each in zip(self._odd, values, strict=False):
            wide = each.astype(np.uint64)
            mixed += (wide ^ wide >> np.uint64(32)) * odd  # the lower half of a double is often 0
        return mixed

    def _key(self, number: NDArray[np.int64], values: Bits) -> NDArray[np.uint64]:
        key: NDArray[np.uint64] = number.astype(np.uint64) * self._odd[-1] + self._hash([values])
        return key


def _places(needle: bytes, sources: Sequence[Sequence[Source]]) -> Iterator[tuple[int, int]]:
    """Each place where the first other run has these bytes, after the number of the source."""
    for number, runs in enumerate(sources):
        content = runs[1].bits(1)
        for begin in range(0, len(content), _BLOCK):
            part = content[begin : begin + _BLOCK + len(needle) - 1].tobytes()
            place = part.find(needle)
            while place >= 0:
                yield number, begin + place
                place = part.find(needle, place + 1)


def _together(parts: Sequence[tuple[int, Run]]) -> tuple[NDArray[np.int64], Run]:
    born = np.repeat([born for born, _ in parts], [len(values[0]) for _, values in parts])
    return born, tuple(np.concatenate(run) for run in zip(*(values for _, values in parts), strict=True))


def _distinct(
    parts: Sequence[tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]],
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """The first of each key, in the order of the keys."""
    keys, of, born = (np.concatenate(column) for column in zip(*parts, strict=True))
    keys, first = np.unique(keys, return_index=True)
    return keys, of[first], born[first]


def _forms(sources: Sequence[Source], way: Way, rounding: int | None) -> Iterator[Run]:
    """The values of a source in all runs as they are stored and, with a rounding, as they may have been converted."""
    if way.words:
        yield tuple(_windows(source.bits(1)) for source in sources)
        return
    stored = tuple(source.bits(way.size) for source in sources)
    if rounding is None or not (way.size == FLOAT_BYTES.get(way.type) == 2):
        yield stored  # the upper half of a float is the float cut off, which another rounding excludes
    if rounding is not None:
        yield tuple(each.byteswap() for each in stored)
        if way.type in TYPE_BYTES:
            yield from zip(*(source.converted(way.type, rounding) for source in sources), strict=True)


def _windows(values: NDArray[np.uint8]) -> Bits:
    """Every group of adjacent bytes."""
    if len(values) < WORD_BYTES:
        return np.empty(0, np.uint32)
    windows = np.lib.stride_tricks.sliding_window_view(values, WORD_BYTES)
    return np.ascontiguousarray(windows).view(np.uint32).reshape(-1)
