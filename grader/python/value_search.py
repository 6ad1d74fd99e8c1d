"""Searches for the values of an array in those that a program may move, in long runs at regular places.

The program waits meanwhile, so a search has to be short: it converts and compares values block by block, and looks for
the first few values of an array before it looks at the others. It may give up, because what it does not find is
compared with another run later (`grader.grading.provenance`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.python.value_sources import FLOAT_BYTES, TYPE_BYTES, UNSIGNED, USUAL, Bits, Form, Source, forms_as

_NEEDLE_BYTES = 16
"""So many equal bytes are taken for moved values, not for a coincidence."""
_FEW = 16
"""An array with at most so many unexplained values needs no further search."""
_MOST_MISSED = 64
"""After so many places where an array has no values of a source, the rest of it counts as unexplained."""
_BLOCK = 1 << 16

MOST_WORK = 1 << 32
"""Limit on the work of a run's searches, about 2 s. The unit is to compare a value, 0.25 to 0.5 ns (2026-11-23). Not a
limit on time, because runs that do the same must find the same."""
_CONVERSION, _LOOK, _STEP = 6, 1 << 14, 1 << 15
"""The work of converting a value, of looking into a source, and of a step to the next run of values."""
_SEARCHED = 1 << 28
"""Limit on the work of looking for the places of one array's runs; four times as much if it begins as a source does
somewhere."""


class Search:
    """The searches of one run."""

    def __init__(self) -> None:
        self.left = MOST_WORK

    def in_upload(self, values: NDArray[Any], type_: str, sources: Sequence[Source]) -> int:
        """The number of unexplained values in an array that is copied to the device."""
        self.left -= _LOOK * len(sources)
        if self.left <= 0:
            return values.size
        bits = np.ascontiguousarray(values).view(UNSIGNED[values.itemsize])
        stored = [Form(source.bits(values.itemsize)) for source in sources]
        fewest = self._by_search(bits.reshape(-1), stored)
        orders = [bits.transpose(order) for order in _orders(bits.shape)]
        if fewest > _FEW:
            fewest = min(fewest, self._by_beginning(orders, stored))
        for forms in forms_as(type_, sources) if type_ in TYPE_BYTES else ():
            if fewest > _FEW:
                fewest = min(fewest, self._by_beginning([bits, *orders], forms))
        return fewest

    def in_output(self, content: NDArray[np.uint8], downloads: Sequence[Source]) -> int:
        """The number of unexplained values in the output."""
        fewest = content.size
        for size in sorted({source.values.itemsize for source in downloads}, reverse=True) or [4, 1]:
            if fewest > _FEW and content.size % size == 0:
                stored = [Form(source.bits(size)) for source in downloads]
                fewest = min(fewest, self._by_search(content.view(UNSIGNED[size]), stored))
        if fewest > _FEW:
            fewest = min(fewest, self._by_whole_arrays(content, downloads))
        for type_ in USUAL:
            if content.size % FLOAT_BYTES[type_] == 0:
                values = content.view(UNSIGNED[FLOAT_BYTES[type_]])
                for forms in forms_as(type_, downloads):
                    if fewest > _FEW:
                        fewest = min(fewest, self._by_beginning([values], forms))
        return fewest

    def place(self, values: Bits, source: Bits) -> int:
        """The first place of the values in a source; -1 if there is none."""
        found = self._find([values], [Form(source)])
        return found[2] if found is not None else -1

    def _by_beginning(self, arrays: Sequence[NDArray[Any]], forms: Sequence[Form]) -> int:
        """The number of unexplained values of an array, given in several orders of its axes, if its first values are in
        a source. In another order than that in memory, a source must have all of them as one run."""
        size = arrays[0].size if arrays else MOST_WORK
        needles = [(array.flat[: _needle_length(array)], array) for array in arrays]
        needles = [(needle, array) for needle, array in needles if (needle != needle[:1]).any()]  # equal prove nothing
        if (found := self._find([needle for needle, _ in needles], forms)) is None:
            return size
        which, at, place = found
        array = needles[which][1]
        if array.flags.c_contiguous:
            return self._by_search(array.reshape(-1), forms, (at, place))
        run = forms[at].bits[place : place + size]
        return 1 if len(run) == size and self._equal(array, run.reshape(array.shape), forms[at]) else size

    def _by_whole_arrays(self, content: NDArray[np.uint8], downloads: Sequence[Source]) -> int:
        """The number of arrays that were copied from the device and, each in some order of its axes, are the output;
        the number of its bytes if it is something else."""
        begin = count = 0
        arrays = [source.values.view(UNSIGNED[source.values.itemsize]) for source in downloads if source.values.size]
        while begin < content.size:
            fitting = (each for each in arrays if each.nbytes <= content.size - begin)
            for array in (
                each.transpose(order) for each in fitting for order in (range(each.ndim), *_orders(each.shape))
            ):
                part = content[begin : begin + array.nbytes].view(array.dtype)
                if self._equal(part.reshape(array.shape), array, Form(array)):
                    begin, count = begin + array.nbytes, count + 1
                    break
            else:
                return content.size
        return count

    def _by_search(self, values: Bits, forms: Sequence[Form], begin: tuple[int, int] | None = None) -> int:
        """The number of values that are not in runs of values of the sources at regular places. A run is regular if it
        continues where the last one ended, or leaves the same gap. Another run counts as one unexplained value, because
        its place could carry information. So does a constant that is repeated between the runs, unless it is 0, and
        each change of the length of such a repetition, or of a run before it or before a gap, and leaving a source
        before its end. If the source and the place of the first
        run were found already, they are `begin`."""
        length = _needle_length(values)
        position = gap = constant = repeated = moved = searched = missed = span = last_span = 0
        most = _SEARCHED if begin is None else 4 * _SEARCHED
        unexplained, (source, follows) = int(begin is not None), begin or (0, 0)
        runs: list[_Run] = []
        while True:
            if period := _period(runs):
                times = self._repeated(values[position:], forms[source], follows + gap, period)
                position += times * sum(run.length for run in period)
                follows += times * (period[0].length + gap)
                span = last_span = period[0].length if times and gap else span
                runs.clear()
            self.left -= _STEP
            if position >= len(values) or self.left <= 0 or searched > most or missed > _MOST_MISSED:
                break
            rest = values[position:]
            expected = dict.fromkeys([(source, follows), (source, follows + gap), (source + 1, 0)])
            found = [(self._common(rest, forms[at], place), at, place) for at, place in expected if at < len(forms)]
            run, at, place = max(found, default=(0, 0, 0), key=lambda each: each[0])
            if not run and rest[0] != constant:
                before = self.left
                if (first := self._find([rest[:length]], forms)) is not None:
                    _, at, place = first
                    run = self._common(rest, forms[at], place)
                    unexplained += 1
                missed += first is None
                searched += before - self.left
            if run:
                if at == source and place == follows:
                    span += run
                else:
                    if at == source:
                        unexplained += bool(span != last_span and last_span)
                        last_span = span
                    else:
                        unexplained += 0 < follows < len(forms[source].bits)
                        last_span = 0
                    span = run
                gap = place - follows if at == source else 0
                source, follows = at, place + run
                runs.append(_Run(run, gap))
            else:
                run = self._common(rest, Form(np.broadcast_to(rest[:1], rest.shape)), 0)
                unexplained += bool(rest[0] != constant) + bool(run != repeated and repeated)
                last = runs[-1].length if runs and runs[-1].constant is None else moved
                unexplained += bool(last != moved and moved)
                constant, repeated, moved = int(rest[0]), run, last
                runs.append(_Run(run, 0, constant))
            position += run
        return unexplained + len(values) - position

    def _find(self, needles: Sequence[Bits], forms: Sequence[Form]) -> tuple[int, int, int] | None:
        """One of the needles, which all begin with the same value, with a source and a place where it is."""
        for at, form in enumerate(forms) if needles else ():
            if self.left <= 0:
                break
            self.left -= _LOOK
            for begin in range(0, len(form.bits) - len(needles[0]) + 1, _BLOCK):
                part = self._read(form, form.bits[begin : begin + _BLOCK + len(needles[0]) - 1])
                last = len(part) - len(needles[0]) + 1
                starts = part[:last] == needles[0][0]
                for which, needle in enumerate(needles):
                    here = starts.copy()
                    for offset in range(1, len(needle)):
                        if not here.any():
                            break
                        self.left -= last
                        here &= part[offset : offset + last] == needle[offset]
                    if here.any():
                        return which, at, begin + int(here.argmax())
        return None

    def _common(self, values: Bits, form: Form, place: int) -> int:
        """The number of values by which `values`, and those of the source from this place, begin."""
        length, begin, step = min(len(values), len(form.bits) - place) if place >= 0 else 0, 0, 64
        while begin < length:
            end = min(length, begin + step)
            part = self._read(form, form.bits[place + begin : place + end])
            if not np.array_equal(values[begin:end], part):
                return begin + int(np.argmax(values[begin:end] != part))
            begin, step = end, min(step * 4, _BLOCK)
        return length

    def _repeated(self, values: Bits, form: Form, place: int, period: Sequence[_Run]) -> int:
        """How many times a period is repeated at the beginning of `values`; its first run would be at this place."""
        moved, length = period[0], sum(run.length for run in period)
        step = moved.length + moved.gap
        most, last = len(values) // length, len(form.bits) - moved.length
        if not 0 <= place <= last:
            return 0
        if step:
            most = min(most, (last - place) // step + 1 if step > 0 else place // -step + 1)
        rows = values[: most * length].reshape(most, length)
        strides = step * form.bits.itemsize, form.bits.itemsize
        source = np.lib.stride_tricks.as_strided(form.bits[place:], (most, moved.length), strides)
        for begin in range(0, most, block := max(1, _BLOCK // length)):
            part = rows[begin : begin + block]
            same = (part[:, : moved.length] == self._read(form, source[begin : begin + block])).all(1)
            if len(period) > 1:
                same &= (part[:, moved.length :] == period[1].constant).all(1)
            if not same.all():
                return begin + int(np.argmin(same))
        return most

    def _equal(self, values: NDArray[Any], source: NDArray[Any], form: Form) -> bool:
        """Whether two arrays have the same values once the bits of `source` are in this form. Both are halved until
        they are small, because the axes of one may be in another order in memory."""
        if values.size <= _BLOCK:
            self.left -= _LOOK
            return self.left > 0 and np.array_equal(values, self._read(form, source))
        axis = int(np.argmax(values.shape))
        halves = zip(*(np.array_split(each, 2, axis) for each in (values, source)), strict=True)
        return all(self._equal(one, other, form) for one, other in halves)

    def _read(self, form: Form, bits: Bits) -> Bits:
        self.left -= bits.size * (_CONVERSION if form.to else 1)
        return form.read(bits)


def _orders(shape: Sequence[int]) -> list[tuple[int, ...]]:
    """The other orders of an array's axes that change the order of its values; at most those of four axes."""
    long = [axis for axis, length in enumerate(shape) if length > 1]
    if not 2 <= len(long) <= 4:
        return []
    short = [axis for axis, length in enumerate(shape) if length <= 1]
    return [(*order, *short) for order in itertools.permutations(long) if order != tuple(long)]


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


def _needle_length(values: NDArray[Any]) -> int:
    return max(1, _NEEDLE_BYTES // values.itemsize)
