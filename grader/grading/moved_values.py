"""Compares the records of two runs on different input: which values were moved, and which did the processor compute?

A value is explained if it is the same in both runs, such as a constant, a mask or a size, or if some place in the
input, or in an array copied from the device, holds this value in the one run and that value in the other: then it was
moved from there. Everything else was computed by the processor.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.grading.run_record import Entry
from grader.python.value_sources import FLOAT_BYTES, TYPE_BYTES, Bits, Source

_MOST_SEARCHES = 32
_MOST_LOOKS = 1 << 18
"""Limit on the sources that are looked into for pieces, since programs may copy thousands of arrays."""
_SATURATED, _PAIRS = 0.5, 4096
"""If a source holds so large a share of pairs that were put together at random, it explains nothing. Chosen."""
_NEEDLE_BYTES = 64
_WORD_BYTES = 4
"""Single bytes are compared in groups of so many, because equal bytes prove nothing."""


@dataclass(frozen=True)
class Computed:
    """Values that two runs do not explain: of which kind most are, how many of this kind there are, and the line that
    most of these come from. None (`count` 0) if their pairs are in some source, but any others would be, too."""

    kind: str
    count: int
    line: int


def unexplained(
    one: Sequence[Entry], other: Sequence[Entry], inputs: tuple[NDArray[np.uint8], NDArray[np.uint8]]
) -> Computed | None:
    """The unexplained values of two records of the same form; None if all are explained."""
    pairs = list(zip(one, other, strict=True))
    copied = [(place, _source(a), _source(b)) for place, (a, b) in enumerate(pairs) if a.kind == "downloads"]
    downloads = _Pool(copied)
    everything = _Pool([(-1, Source(inputs[0], ""), Source(inputs[1], "")), *copied])
    lines: dict[tuple[str, int], int] = {}
    for place, pair in enumerate(pairs):
        entry, count = pair[0], 0
        if entry.kind == "uploads":
            count = everything.without(pair, entry.size, entry.type, place)
        elif entry.kind == "written":
            sizes = {source.values.itemsize for _, source, _ in copied} or {4}
            ways = [(size, "") for size in sorted(sizes)] + [(size, type_) for type_, size in FLOAT_BYTES.items()]
            ways = [way for way in ways if entry.values.size % way[0] == 0] or [(1, "")]
            count, best = downloads.without(pair, *ways[0], place), ways[0]
            for way in ways[1:] if count else ():
                found = downloads.without(pair, *way, place)
                better = found * way[0] < count * best[0] / 2  # else some values agree by chance
                downloads.forget(*(best if better else way), entry.line)
                count, best = (found, way) if better else (count, best)
        key = entry.kind, entry.line
        lines[key] = lines.get(key, 0) + count
    for line, count in _numbers(pairs, everything).items():
        lines["arguments", line] = count
    (kind, line), most = max(lines.items(), key=lambda item: item[1], default=(("", 0), 0))
    if most:
        return Computed(kind, sum(count for (of, _), count in lines.items() if of == kind), line)
    return Computed("", 0, 0) if everything.by_chance() or downloads.by_chance() else None


def _source(entry: Entry) -> Source:
    storage = "f" if entry.type in FLOAT_BYTES and entry.type != "bf16" else "u"
    return Source(entry.values.view(f"{storage}{entry.size}"), entry.type)


_Sourced = tuple[int, Source, Source]
"""When a source became known to the program, and its values in both runs."""
_Known = tuple[NDArray[np.uint64], NDArray[np.int64]]
"""The pairs of values of all sources, as sorted keys, and when each became known."""


class _Pool:
    """The values of sources in two runs."""

    def __init__(self, sources: Sequence[_Sourced]) -> None:
        self._sources = sources
        self._known: dict[tuple[int, str, bool], _Known] = {}
        self._next: dict[int, int] = {}
        self._searches, self._looks = _MOST_SEARCHES, _MOST_LOOKS
        self._saturated = False
        self._trusted: dict[tuple[int, str, int], list[tuple[Bits, Bits, NDArray[np.int64]]]] = {}
        """The pairs that were found, by size, type and the line that copies them."""

    def without(self, pair: Sequence[Entry], size: int, type_: str, place: int) -> int:
        """The number of values of an array in two runs that are not the same and were not moved from a source that was
        known at `place`."""
        if self._has_piece(pair, place):
            return 0
        first, second = (_groups(each.values) if size == 1 else each.values.view(f"u{size}") for each in pair)
        if size > 1 and self._is_converted(first, second, type_, place):
            return 0
        differ = first != second
        found = self.holds(first[differ], second[differ], size, type_, place, pair[0].line)
        if size == 1 and not found.all() and self._holds_bytes(pair, place):
            self._saturated = True
            return 0
        return int(np.count_nonzero(~found))

    def _holds_bytes(self, pair: Sequence[Entry], place: int) -> bool:
        """Whether each byte of an array in two runs is somewhere. That is so for most arrays, also for moved ones."""
        known = np.zeros(1 << 16, bool)
        for born, *source in self._sources:
            if born < place:
                one, other = (each.bits(1).astype(np.uint16) for each in source)
                known[one << 8 | other] = True
        one, other = (each.values.astype(np.uint16) for each in pair)
        return bool((known[one << 8 | other] | (one == other)).all())

    def _is_converted(self, first: Bits, second: Bits, type_: str, place: int) -> bool:
        """Whether values in two runs are all those of a source as another type, in their order."""
        for born, *source in self._sources:
            self._looks -= 1
            if self._looks < 0:
                return False
            if born < place and source[0].values.size == len(first):
                for one, other in _forms(source, first.itemsize, type_, raw=False):
                    if np.array_equal(one, first) and np.array_equal(other, second):
                        return True
        return False

    def _has_piece(self, pair: Sequence[Entry], place: int) -> bool:
        """Whether an array is a piece of a source, which is found soon if it follows the last piece. Saves time."""
        one, other = (each.values for each in pair)
        for number, (born, *source) in enumerate(self._sources):
            self._looks -= 1
            if self._looks < 0:
                return False
            first, second = (each.bits(1) for each in source)
            if born >= place or len(first) < len(one):
                continue
            begins = [self._next.get(number, 0)]
            if number not in self._next and self._searches > 0:
                self._searches -= 1
                begins.append(max(0, first.tobytes().find(one[:_NEEDLE_BYTES].tobytes())))
            for begin in begins:
                pieces = (values[begin : begin + len(one)] for values in (first, second))
                if all(map(np.array_equal, pieces, (one, other))):
                    self._next[number] = begin + len(one)
                    return True
        return False

    def holds(
        self, one: Bits, other: Bits, size: int, type_: str, places: int | NDArray[np.int64], line: int
    ) -> NDArray[np.bool_]:
        """Which pairs of values are in a source that was known at these places, as they are or converted."""
        if not len(one):
            return np.zeros(0, bool)
        where = np.broadcast_to(np.asarray(places, np.int64), one.shape)
        found = self._holds(one, other, size, type_, where)
        self._trusted.setdefault((size, type_, line), []).append((one[found], other[found], where[found]))
        return found

    def forget(self, size: int, type_: str, line: int) -> None:
        """Do not look at the pairs that were found in this way."""
        self._trusted.pop((size, type_, line), None)

    def by_chance(self) -> bool:
        """Whether the sources would also hold most pairs that are put together at random from those of a line. Then
        they explain nothing: a program can have the device make a table of all pairs of a few values."""
        dice = np.random.default_rng(1)
        for (size, type_, _), found in self._trusted.items():
            one, other, places = (np.concatenate(parts) for parts in zip(*found, strict=True))
            _, distinct = np.unique(_keys(one, other), return_index=True)
            if len(distinct) > 1:
                first, second = dice.choice(distinct, _PAIRS), dice.choice(distinct, _PAIRS)
                other_pair = first != second
                first, second = first[other_pair], second[other_pair]
                places = np.maximum(places[first], places[second])
                self._saturated |= self._holds(one[first], other[second], size, type_, places).mean() > _SATURATED
        return self._saturated

    def _holds(self, one: Bits, other: Bits, size: int, type_: str, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        found = self._among(one, other, places, self._values(size, type_, raw=True))
        near = (0, 1, -1) if size == FLOAT_BYTES.get(type_) == 2 else (0,)  # a program may round in its own way
        for steps in itertools.product(near, repeat=2):
            if not found.all():  # few programs convert values
                left = np.flatnonzero(~found)
                first, second = (
                    each[left] + np.array(step).astype(each.dtype)
                    for each, step in zip((one, other), steps, strict=True)
                )
                found[left] = self._among(first, second, places[left], self._values(size, type_, raw=False))
        return found

    @staticmethod
    def _among(one: Bits, other: Bits, places: NDArray[np.int64], values: _Known) -> NDArray[np.bool_]:
        known, born = values
        found = np.zeros(len(one), bool)
        if len(known):
            keys = _keys(one, other)
            order = np.argsort(keys)  # sorted keys are found in a tenth of the time
            at = np.minimum(np.searchsorted(known, keys[order]), len(known) - 1)
            found[order] = (known[at] == keys[order]) & (born[at] < places[order])
        return found

    def _values(self, size: int, type_: str, *, raw: bool) -> _Known:
        if (size, type_, raw) not in self._known:
            forms = [(place, *form) for place, *both in self._sources for form in _forms(both, size, type_, raw=raw)]
            keys = [_keys(first, second) for _, first, second in forms]
            known, first_at = np.unique(np.concatenate([*keys, np.empty(0, np.uint64)]), return_index=True)
            born = np.repeat([place for place, *_ in forms], [len(each) for each in keys]).astype(np.int64)
            self._known[size, type_, raw] = known, born[first_at]
        return self._known[size, type_, raw]


def _forms(source: Sequence[Source], size: int, type_: str, *, raw: bool) -> Iterator[tuple[Bits, Bits]]:
    """The values of a source in two runs, as they are stored, or else as they may have been converted."""
    one, other = source
    if size == 1:
        if raw:
            yield _windows(one.bits(1)), _windows(other.bits(1))
        return
    if raw:
        yield one.bits(size), other.bits(size)
        return
    yield one.bits(size).byteswap(), other.bits(size).byteswap()
    if type_ in TYPE_BYTES:
        yield from zip(one.converted(type_), other.converted(type_), strict=True)


def _numbers(pairs: Sequence[Sequence[Entry]], pool: _Pool) -> dict[int, int]:
    """For each line, the number of arguments that are not the same in two runs and were not copied from the device."""
    found: dict[int, int] = {}
    differ: dict[tuple[str, int], list[tuple[int, int, int]]] = {}
    for place, (one, other) in enumerate(pairs):
        for a, b in zip(one.numbers, other.numbers, strict=True):
            if a != b:
                (kind, first), (of, second) = _bits(a), _bits(b)
                if kind and kind == of:
                    differ.setdefault((kind, one.line), []).append((place, first, second))
                else:
                    found[one.line] = found.get(one.line, 0) + 1
    for (kind, line), each in differ.items():
        size = TYPE_BYTES[kind]
        places = np.array([place for place, *_ in each], np.int64)
        ours, theirs = (np.array([values[at] for values in each], f"u{size}") for at in (1, 2))
        found[line] = found.get(line, 0) + int(np.count_nonzero(~pool.holds(ours, theirs, size, kind, places, line)))
    return found


def _bits(number: object) -> tuple[str, int]:
    """A number of a launch as a type's name and bits; small integers as int32, since they may come from any array. The
    name is '' for what cannot come from the device."""
    kind, value = number if isinstance(number, list) else ("int32", number)
    if not isinstance(value, int) or (kind == "int32" and not -(1 << 31) <= value < 1 << 32):
        return "", 0
    if kind in ("int8", "uint8", "int1"):  # of single bytes, all pairs are somewhere
        kind, value = "int32", value - (value >> 7 << 8 if kind == "int8" else 0)
    return kind, value % (1 << 8 * TYPE_BYTES[kind])


def _keys(one: Bits, other: Bits) -> NDArray[np.uint64]:
    """A number for each pair of values; of 8-byte values, a hash."""
    first, second = one.astype(np.uint64), other.astype(np.uint64)
    if one.itemsize < 8:
        return first << np.uint64(32) | second
    return first * np.uint64(0x9E3779B97F4A7C15) ^ (second * np.uint64(0xC2B2AE3D27D4EB4F) >> np.uint64(7))


def _groups(values: NDArray[np.uint8]) -> Bits:
    """Single bytes as groups, the last one filled up with zeros."""
    return np.pad(values, (0, -len(values) % _WORD_BYTES)).view(np.uint32)


def _windows(values: NDArray[np.uint8]) -> Bits:
    """Every group of adjacent bytes."""
    if len(values) < _WORD_BYTES:
        return np.empty(0, np.uint32)
    windows = np.lib.stride_tricks.sliding_window_view(values, _WORD_BYTES)
    return np.ascontiguousarray(windows).view(np.uint32).reshape(-1)
