"""Compares the records of several runs on different input: which values were moved, and which did the processor
compute?

A value is explained if it is the same in all runs, such as a constant, a mask or a size, or if some place in the input,
or in an array copied from the device, holds just these values in these runs: then it was moved from there. Everything
else was computed by the processor.

The sources may hold so many values that the processor can choose among them: the device can make a table of all pairs
of two digits. So the comparison also limits the information in the explained values. Given the values of the other
runs, the graded run might have any value that the sources hold together with those. A program does not know what it
computes in other runs. So a choice that it makes from its input is found in the sources only if they hold every
combination, and is counted in full. Values of 16 bits or less also agree by chance, but in more runs more rarely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from grader.grading.run_record import Entry
from grader.grading.value_pool import WORD_BYTES, Pool, Run, Way
from grader.python.value_sources import FLOAT_BYTES, TYPE_BYTES, Bits, Source

_MOST_RUNS = 5
"""Limit on the runs that are compared. With 4, a million values of 16 bits are hardly ever equal by chance."""
_MOST_LEFT = 0.5
"""If another run leaves a larger share of the information that may be hidden, it is not there by chance. Chosen."""
_MOST_DIFFERENT = 1 << 24
"""Limit on the values of one type that are looked at, of those that are not the same in all runs, at about 50 bytes of
memory each."""
_SAMPLE_BYTES = 1 << 20
"""So much of the output shows what its type is."""


@dataclass(frozen=True)
class Computed:
    """Values that no place explains: of which kind most are, how many of this kind there are, and the line that most of
    these come from."""

    kind: str
    count: int
    line: int


@dataclass(frozen=True)
class Comparison:
    """What several runs show. `hidden_bits` limits the information that the processor can have given to kernels by
    choosing among values that are explained; infinite if there are too many to look at."""

    computed: Computed | None
    hidden_bits: float


def compare_runs(
    one: Sequence[Entry],
    given: Source,
    another: Callable[[], tuple[Sequence[Entry], Source]],
    most_hidden_bits: float,
) -> Comparison:
    """Compare the graded run, `one`, with others, each with its input, until no more can be hidden than is allowed, or
    a value is unexplained, or what may be hidden is not there by chance."""
    records, inputs, before = [one], [given], np.inf
    while True:
        record, source = another()
        records.append(record)
        inputs.append(source)
        found = compare(records, inputs)
        if found.computed is not None or found.hidden_bits <= most_hidden_bits:
            return found
        if found.hidden_bits > before * _MOST_LEFT or len(records) == _MOST_RUNS:
            return found
        before = found.hidden_bits


def compare(records: Sequence[Sequence[Entry]], inputs: Sequence[Source]) -> Comparison:
    """Compare the records, all of the same form, of runs with these inputs. Arrays that were too large to be recorded
    are left out."""
    steps = list(zip(*records, strict=True))
    copied = [
        (place, [_source(entry) for entry in entries])
        for place, entries in enumerate(steps)
        if entries[0].kind == "downloads" and not entries[0].omitted
    ]
    downloads, everything = Pool(copied), Pool([(-1, inputs), *copied])
    items, explained = _arguments(steps)
    for place, entries in enumerate(steps):
        first, values = entries[0], tuple(entry.values for entry in entries)
        if first.kind == "written":
            sizes = {sources[0].values.itemsize for _, sources in copied}
            explained.append(_written(_Item("written", first.line, place, values), downloads, sizes))
        elif first.kind == "uploads" and not everything.holds_piece(values, place):
            way = Way(first.size, first.type if TYPE_BYTES.get(first.type) == first.size else "")
            items.setdefault(way, []).append(_Item("uploads", first.line, place, values))
    for way, of in items.items():
        explained += _explain(of, way, everything) if way.size > 1 else _single_bytes(of, everything)
    if not (downloads.complete and everything.complete):
        return Comparison(None, np.inf)
    return Comparison(_computed(explained), sum(each.hidden_bits for each in explained))


def _source(entry: Entry) -> Source:
    storage = "f" if entry.type in FLOAT_BYTES and entry.type != "bf16" else "u"
    return Source(entry.values.view(f"{storage}{entry.size}"), entry.type)


@dataclass(frozen=True)
class _Item:
    """What is explained by itself: an array, or all numbers of a type that a line gives to launches."""

    kind: str
    line: int
    place: int | NDArray[np.int64]
    """The place in the record, or that of each value."""
    values: Run


@dataclass(frozen=True)
class _Explained:
    kind: str
    line: int
    unexplained: int
    hidden_bits: float


def _computed(explained: Sequence[_Explained]) -> Computed | None:
    lines: Counter[tuple[str, int]] = Counter()
    for each in explained:
        lines[each.kind, each.line] += each.unexplained
    [((kind, line), most)] = lines.most_common(1) or [(("", 0), 0)]
    return Computed(kind, sum(count for (of, _), count in lines.items() if of == kind), line) if most else None


def _written(item: _Item, pool: Pool, sizes: Iterable[int]) -> _Explained:
    """The output, whose type is not known, read in the way that leaves the fewest bytes unexplained."""
    ways = [Way(size) for size in sorted(sizes, reverse=True) or [4]]
    ways += [Way(size, type_) for type_, size in sorted(FLOAT_BYTES.items(), key=lambda each: -each[1])]
    ways = [way for way in ways if way.size > 1 and item.values[0].size % way.size == 0]
    sample = replace(item, values=tuple(each[:_SAMPLE_BYTES] for each in item.values))
    best, least, too_many = Way(WORD_BYTES, words=True), np.inf, False
    for way in ways:
        [found] = _explain([sample], way, pool)
        lost = found.unexplained * way.size
        if not pool.complete:
            too_many = pool.complete = True
        elif lost < least / 2:  # otherwise some values may agree by chance
            best, least = way, lost
        if not least:
            break
    pool.complete = not (too_many and least)
    return _explain([item], best, pool)[0]


def _single_bytes(items: Sequence[_Item], pool: Pool) -> list[_Explained]:
    """Arrays of bytes, as words or, if that explains all of them, as bytes in any order."""
    found = _explain(items, Way(WORD_BYTES, words=True), pool)
    left = [number for number, each in enumerate(found) if each.unexplained]
    for number, each in zip(left, _explain([items[number] for number in left], Way(1), pool), strict=True):
        if not each.unexplained:
            found[number] = each
    return found


def _explain(items: Sequence[_Item], way: Way, pool: Pool) -> list[_Explained]:
    """How many values of each item are in no source, and what the others may hide. All values of an item are rounded
    alike."""
    runs = [way.read(item.values) for item in items]
    changed = [np.logical_or.reduce([each != values[0] for each in values[1:]]) for values in runs]
    room, whole = _MOST_DIFFERENT, True
    for each in changed:
        beyond = np.flatnonzero(each)[room:]
        each[beyond] = False
        room, whole = room - int(np.count_nonzero(each)), whole and not len(beyond)
    counts = [int(np.count_nonzero(each)) for each in changed]
    if not any(counts):
        return [_Explained(item.kind, item.line, 0, 0) for item in items]
    values = tuple(
        np.concatenate([each[run][at] for each, at in zip(runs, changed, strict=True)]) for run in range(len(runs[0]))
    )
    places = np.concatenate(
        [np.broadcast_to(item.place, at.shape)[at] for item, at in zip(items, changed, strict=True)]
    ).astype(np.int64)
    unchanged, of_places = _unchanged(
        values, np.concatenate([each[0][~at] for each, at in zip(runs, changed, strict=True)])
    )
    of = np.repeat(np.arange(len(items)), counts)
    tries = []
    for rounding in way.forms:
        found, choices = pool.look_up(values, places, way, rounding)
        bits = np.log2(np.maximum(1, choices + unchanged)) * found
        tries.append([np.bincount(of, each, minlength=len(items)) for each in (~found, bits)])
        if found.all():
            break
    tries.sort(key=lambda each: np.count_nonzero(each[0]))
    lost, hidden_bits = np.transpose(tries, (1, 2, 0))
    best = lost.argmin(1)
    more = np.log2(len(np.unique(best[np.array(counts) > 0]))) + (of_places / len(items) if whole else np.inf)
    return [
        _Explained(item.kind, item.line, int(lost[at]), float(hidden_bits[at]) + more)
        for item, lost, hidden_bits, at in zip(items, lost, hidden_bits, best, strict=True)
    ]


def _unchanged(values: Run, same: Bits) -> tuple[NDArray[np.float64], float]:
    """For each value that all other runs agree on, how many `same` values, on which all runs agree, there are for each
    such value: a few ones among many zeros carry information by their places. Next to that, the bits that a few such
    zeros among many ones carry."""
    agree = np.logical_and.reduce([each == values[1] for each in values[1:]])
    known, number, count = np.unique(values[1][agree], return_inverse=True, return_counts=True)
    found = np.zeros(len(agree))
    if not len(known):
        return found, 0.0
    at = np.minimum(np.searchsorted(known, same), len(known) - 1)
    alike = np.bincount(at[known[at] == same], minlength=len(known))
    found[agree] = (alike / count)[number]
    return found, float(np.sum(alike * np.log2(1 + count / np.maximum(1, alike))))


def _arguments(steps: Sequence[Sequence[Entry]]) -> tuple[dict[Way, list[_Item]], list[_Explained]]:
    """The numbers of launches, of each line those that differ, and in one item those that are the same in all runs.
    Next to them, what cannot come from the device."""
    same: Counter[object] = Counter()
    differ: dict[tuple[str, int], list[tuple[int, ...]]] = {}
    for place, entries in enumerate(steps):
        for numbers in zip(*(entry.numbers for entry in entries), strict=True):
            if all(number == numbers[0] for number in numbers):
                same[tuple(numbers[0]) if isinstance(numbers[0], list) else numbers[0]] += 1
            else:
                types, bits = zip(*map(_bits, numbers), strict=True)
                type_ = types[0] if len(set(types)) == 1 else ""
                differ.setdefault((type_, entries[0].line), []).append((place, *bits))
    lost = [_Explained("arguments", line, len(rows), 0) for (type_, line), rows in differ.items() if not type_]
    items: dict[Way, list[_Item]] = {}
    for (type_, line), rows in differ.items():
        if not type_:
            continue
        way, (places, *columns) = Way(TYPE_BYTES[type_], type_), np.array(rows, np.uint64).T
        values = tuple(column.astype(f"u{way.size}").view(np.uint8) for column in columns)
        items.setdefault(way, []).append(_Item("arguments", line, places.astype(np.int64), values))
    for each, count in same.items():
        type_, stored = _bits(each)
        if (way := Way(TYPE_BYTES.get(type_, 8), type_)) in items:
            repeated = np.full(count, stored, np.uint64).astype(f"u{way.size}").view(np.uint8)
            items[way].append(_Item("arguments", 0, 0, (repeated,) * len(steps[0])))
    return items, lost


def _bits(number: object) -> tuple[str, int]:
    """A number of a launch as a type's name and bits; small integers as int32, since they may come from any array. The
    name is '' for what cannot come from the device."""
    kind, value = number if isinstance(number, list | tuple) else ("int32", number)
    if not isinstance(value, int) or (kind == "int32" and not -(1 << 31) <= value < 1 << 32):
        return "", 0
    if kind in ("int8", "uint8", "int1"):  # of single bytes, all pairs are somewhere
        kind, value = "int32", value - (value >> 7 << 8 if kind == "int8" else 0)
    return kind, value % (1 << 8 * TYPE_BYTES[kind])
