"""Recognises each node of a recording as a step of a right computation.

A `Label` says that a node's value is `factor` times the step's value at `index`, as far as the terms in `terms` are
summed, plus `shift`. The factor is what makes running sums easy to follow: whatever maximum a program subtracts,
its weights are the final ones times a factor, the same in all terms that may be added up. A node that no step
explains, although its operands are explained, is `Odd`; what is computed from it, too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cudaemu.operations import OPERATIONS
from grader.checking.watch.recording import CONSTANT, LEAF, Recording
from grader.operators.steps import Difference, Steps, StepValues, Sum, Weights

SAME = 1e-3
"""Factors that differ by less, relatively, are equal: exp and division are approximate in a recording."""
_LOG2 = math.log(2)
MANY_NODES = 120_000
"""Only in a larger recording the numbers that are kept for each row are not followed."""
MOST_NODES = 1_000_000
"""More nodes are not labelled: it would take more than some seconds."""
_PLAIN = frozenset({0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5})
_FAR = 80.0
"""The largest logarithm of a factor that is told apart."""


@dataclass(frozen=True, slots=True)
class Number:
    """A value that depends on no term by itself: a constant, a scale, a maximum, a correction, a sum's inverse.
    `of`: the label of the sum or score that it was made from; `how`: the operation."""

    value: float
    how: str = ""
    of: Label | None = None
    node: int = 0


@dataclass(slots=True)  # not frozen, which takes four times as long to make
class Label:
    """`terms`: a bit for each term, −1 for a step that is no sum, or an input tensor's element."""

    step: str
    index: tuple[int, ...]
    factor: float = 1.0
    shift: float = 0.0
    terms: int = -1
    made: int = 0
    """The node that last added a term or changed the factor, other than by log₂ e."""
    source: int = 0
    """Of a sum of weights: the exponential of its last term."""
    by: int = 0
    """Of a sum of weights: the exponential by which it was multiplied last, since its last term."""


@dataclass(frozen=True, slots=True)
class Odd:
    """A node that is no step of a right computation, with what its operands are. `why` is one of: product, index, unit,
    twice, factor, carried, start, slope, incomplete, rows, unknown."""

    node: int
    why: str
    left: Label | Number | None = None
    right: Label | Number | None = None
    facts: Mapping[str, float] = field(default_factory=dict)


Plain = Label | Number
Meaning = Plain | Odd


class Reader:
    """Labels the nodes of one recording, of a run on the input `units`: the tensors of each by name."""

    def __init__(self, recording: Recording, steps: Steps, units: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        self.recording, self.steps = recording, steps
        self.elements, self.tensors = _elements(units), units[0]
        self.values = [StepValues(steps, tensors) for tensors in units]
        self.sums = {each.name: each for each in steps.sums}
        self.by_factors = {tuple(sorted(name for name, _ in each.factors)): each for each in reversed(steps.sums)}
        self.meanings: list[Meaning | None] = [None] * len(recording.value)
        self._bits: list[int] = recording.value.view(np.uint32).tolist()
        self.weights, self.difference = steps.weights or _NO_WEIGHTS, steps.difference or _NO_DIFFERENCE
        own = self.weights.name
        factors = [(each, *factor) for each in steps.sums for factor in each.factors]
        self.of_rows = {own} | {of.name for of, name, at in factors if name == own and at[0] == of.index[:1]}
        """The steps whose first index is the row of the weights, and which weights are summed up in."""

    def run(self) -> bool:
        """Label all nodes that the roots come from. False if they are too many."""
        r, meanings = self.recording, self.meanings
        names = [OPERATIONS[operation] for operation in r.sites[:, 0].tolist()]
        known = self._row_numbers() if len(r.value) > MANY_NODES else np.zeros(len(r.value), bool)
        needed = self._reached(known)
        if len(needed) > MOST_NODES:
            return False
        self._offsets = self._common_offsets(needed[r.site[needed] == LEAF].tolist())
        columns = (each[needed].tolist() for each in (known, r.site, r.value, r.a, r.b, r.c))
        for node, is_known, site, value, *below in zip(needed.tolist(), *columns, strict=True):
            if is_known or site == CONSTANT:
                meanings[node] = Number(value)
            elif site == LEAF:
                meanings[node] = (self._element(node) if value else None) or Number(value)
            else:
                of = [meanings[each] or Number(0.0) for each in below if each]
                plain = [each for each in of if not isinstance(each, Odd)]
                odd = min((o for o in of if isinstance(o, Odd)), key=lambda o: o.node) if len(plain) < len(of) else None
                meanings[node] = odd or self._computed(node, names[site], plain, value)
        return True

    def _reached(self, known: NDArray[np.bool_]) -> NDArray[np.intp]:
        """The nodes that the roots come from, in ascending order, not followed below those that are `known`."""
        r = self.recording
        seen = np.zeros(len(r.value), bool)
        front = np.unique(np.array(r.roots, np.int64))
        while len(front):
            seen[front] = True
            below = front[(r.site[front] < LEAF) & ~known[front]]
            front = np.unique(np.concatenate([r.a[below], r.b[below], r.c[below]]))
            front = front[~seen[front]]
        seen[0] = False
        return np.flatnonzero(seen)

    def _row_numbers(self) -> NDArray[np.bool_]:
        """The loads of numbers that a right computation keeps for each row (a maximum, a sum, D): they need not be
        followed. A site counts only if nearly all of its loads match."""
        r, weights = self.recording, self.weights
        known = np.zeros(len(r.value), bool)
        if weights is _NO_WEIGHTS:
            return known
        kept: list[NDArray[np.float64]] = []
        for unit in self.values:
            lse = unit.scores[:, 0] - unit.log[:, 0]
            most = unit.scores.max(axis=1)
            total = np.exp(lse - most)
            kept += [lse, most, total, 1 / total, lse / _LOG2, most / _LOG2]
            if self.steps.difference:
                kept.append(unit.of(self.difference.less))
        stored = np.sort(np.concatenate(kept))
        loads = np.flatnonzero(r.site < LEAF)
        loads = loads[r.sites[r.site[loads], 0] == OPERATIONS.index("load")]
        loads = loads[r.site[r.a[loads]] < LEAF]
        values = r.value[loads].astype(np.float64)
        place = np.clip(np.searchsorted(stored, values), 1, len(stored) - 1)
        off = np.minimum(np.abs(values - stored[place - 1]), np.abs(values - stored[place]))
        matches = off <= 2e-5 * np.abs(values) + 1e-6
        sites = r.site[loads]
        count = np.bincount(sites, minlength=len(r.sites))
        hits = np.bincount(sites, weights=matches, minlength=len(r.sites))
        known[loads[matches & (hits[sites] >= 0.98 * count[sites]) & (count[sites] >= 8)]] = True
        return known

    # ---- leaves ----------------------------------------------------------------------

    def _common_offsets(self, leaves: Sequence[int]) -> Counter[tuple[str, int, int]]:
        """How often an element's address has this distance from its place in the tensor: two equal values are told
        apart by their addresses."""
        clear = ((node, places[0]) for node in leaves if len(places := self.elements.get(self._bits[node], [])) == 1)
        return Counter(self._offset(node, place) for node, place in clear)

    def _offset(self, node: int, place: tuple[str, int, int, int]) -> tuple[str, int, int]:
        tensor, unit, row, column = place
        address = int(self.recording.a[node]) | int(self.recording.b[node]) << 32
        return tensor, unit, address - 4 * (row * self.tensors[tensor].shape[1] + column)

    def _element(self, node: int) -> Label | None:
        """The element of the input that has a node's value."""
        if not (places := self.elements.get(self._bits[node])):
            return None
        tensor, *index = max(places, key=lambda place: self._offsets[self._offset(node, place)])
        return Label(tensor, tuple(index), made=node if self.recording.operation(node) else 0)

    # ---- operations ----------------------------------------------------------------------

    def _computed(self, node: int, operation: str, of: list[Plain], value: float) -> Meaning:
        a = of[0] if of else Number(0.0)
        if operation == "load":
            return a
        if operation == "other":
            return Odd(node, "unknown")
        if operation == "store":  # an element of the input that was moved as an integer is recognised here
            plain = isinstance(a, Number) and not a.how and a.value not in _PLAIN
            return (self._element(node) if plain else None) or a
        if Label not in map(type, of):
            known = [each for each in of if isinstance(each, Number)]
            inherited = next((each.how for each in known if each.how), "")
            how = operation if operation in ("max", "min", "ex2", "lg2") else inherited
            return Number(value, how, next((each.of for each in known if each.of), None), node)
        if operation == "mul":
            return self._product(node, a, of[1])
        if operation == "fma":
            product = self._product(node, a, of[1])
            return product if isinstance(product, Odd) else self._sum(node, product, of[2], value)
        if operation in ("add", "atomic"):
            return self._sum(node, a, of[1] if len(of) > 1 else Number(0.0), value)
        if operation == "sub":
            return self._sum(node, a, _scaled(of[1], -1.0), value)
        if operation == "neg":
            return _scaled(a, -1.0)
        if operation in ("max", "min", "lg2", "sqrt", "rsqrt", "abs"):
            return Number(value, operation, next((each for each in of if isinstance(each, Label)), None))
        if operation == "ex2":
            return self._exponential(node, a, value)
        if operation == "div":
            inverse = self._inverse(node, of[1])
            return inverse if isinstance(inverse, Odd) else self._product(node, a, inverse)
        if operation == "rcp":
            return self._inverse(node, a)
        return Odd(node, "unknown")

    def _inverse(self, node: int, a: Plain) -> Meaning:
        if isinstance(a, Label) and a.step not in (self.weights.total, self.weights.name):
            return Odd(node, "unknown", a)
        value = a.value if isinstance(a, Number) else self._value_of(a)
        inverse = 1 / value if value else math.inf
        return Number(inverse, a.how, a.of) if isinstance(a, Number) else Number(inverse, "inverse", a)

    def _value_of(self, label: Label) -> float:
        """The value of a weight or of a sum of weights."""
        log = self.values[label.index[0]].log[label.index[1]]
        return label.factor * float(np.exp(log[numbers(self._as_total(label).terms)]).sum())

    def _product(self, node: int, a: Plain, b: Plain) -> Meaning:
        if isinstance(a, Number) and isinstance(b, Number):
            return Number(a.value * b.value, a.how or b.how, a.of or b.of)
        if isinstance(a, Number) or isinstance(b, Number):
            label, number = (b, a) if isinstance(a, Number) else (a, b)
            assert isinstance(label, Label) and isinstance(number, Number)
            return self._times(node, label, number)
        weights, difference = self.weights, self.difference
        if weights.total in (a.step, b.step) and a.step != b.step:
            label, total = (b, a) if a.step == weights.total else (a, b)
            summed = label.step == weights.name and total.terms >> label.index[2] & 1
            if label.step in self.of_rows and not summed:  # O is kept divided by the sum so far
                if label.index[:2] != total.index[:2]:
                    return Odd(node, "rows", label, total)
                return _scaled(label, self._value_of(total))
        if a.step == b.step == weights.name and a.index[:2] == b.index[:2]:
            return _scaled(a, self._value_of(b), node)
        if weights.name in (a.step, b.step):
            one, sum_ = (a, b) if a.step == weights.name else (b, a)
            if sum_.step in self.sums and sum_.step in self.of_rows and sum_.index[:2] == one.index[:2]:
                # a key that is the maximum so far: a correction
                return _scaled(sum_, self._value_of(one), node, one.made)
        if {a.step, b.step} == {difference.weights, difference.of}:
            return self._difference(node, *((a, b) if a.step == difference.weights else (b, a)))
        if (of := self.by_factors.get(tuple(sorted((a.step, b.step))))) is not None:
            return self._term(node, of, *((a, b) if a.step == of.factors[0][0] else (b, a)))
        return Odd(node, "product", a, b)

    def _times(self, node: int, label: Label, number: Number) -> Meaning:
        inverse, weights = number.of, self.weights
        if number.how == "inverse" and inverse is not None and inverse.step == weights.total:
            rows = label.index[:2]
            if label.step in self.of_rows and rows != inverse.index[:2]:
                return Odd(node, "rows", label, inverse)
            missing = self.missing(inverse)
            if missing and not (label.step in self.sums and self.missing(label)):
                return Odd(node, "incomplete", inverse, label)
        if number.how == "falling" and label.step not in {*self.sums, weights.of, weights.name}:
            return Odd(number.node, "slope", number.of, label, {"slope": -1.0})
        same = abs(abs(number.value) * _LOG2 - 1) < 1e-6 or abs(number.value) == 1
        corrects = label.source and number.how in ("ex2", "falling")
        return _scaled(label, number.value, 0 if same else node, number.node if corrects else 0)

    def _term(self, node: int, of: Sum, a: Label, b: Label) -> Meaning:
        """The product of two factors of a sum."""
        if a.index[0] != b.index[0]:
            return Odd(node, "unit", a, b)
        for label in (a, b):
            if label.terms != -1 and self.missing(label):
                return Odd(node, "incomplete", label, b if label is a else a)
            if abs(label.shift) > 1e-6:
                return Odd(node, "unknown", a, b)
        (_, mine), (_, others) = of.factors
        letters = dict(zip(mine + others, a.index[1:] + b.index[1:], strict=True))
        if tuple(map(letters.get, mine)) != a.index[1:]:
            return Odd(node, "index", a, b)
        index = (a.index[0], *[letters[letter] for letter in of.index])
        return Label(of.name, index, a.factor * b.factor, 0.0, 1 << letters[of.over], node, a.source or b.source)

    def _difference(self, node: int, weights: Label, of: Label) -> Meaning:
        if weights.index != of.index:
            return Odd(node, "index", weights, of)
        if self.missing(of):
            return Odd(node, "incomplete", of, weights)
        less = float(self.values[of.index[0]].of(self.difference.less)[of.index[1]]) * of.factor
        if abs(of.shift + less) > SAME * max(1.0, abs(less)):
            return Odd(node, "difference", weights, of, {"found": -of.shift, "expected": less})
        return Label(self.difference.name, weights.index, weights.factor * of.factor, made=node)

    def _sum(self, node: int, a: Plain, b: Plain, value: float) -> Meaning:
        if isinstance(a, Number) and isinstance(b, Number):
            return Number(a.value + b.value, a.how or b.how, a.of or b.of)
        if isinstance(a, Number) or isinstance(b, Number):
            label, number = (b, a) if isinstance(a, Number) else (a, b)
            assert isinstance(label, Label) and isinstance(number, Number)
            if abs(number.value) <= 1e-6 * abs(value) or number.value == 0:
                return label
            if not math.isfinite(number.value):
                return Number(value)
            if (one := self._weight_of_one(label, number)) is not None:
                return self._sum(node, label, one, value)
            if self._may_shift(label):
                return replace(label, shift=label.shift + number.value)
            return Odd(node, "start", label, number)
        if a.step == b.step in self.sums and a.index == b.index and a.factor == b.factor and not a.terms & b.terms:
            return Label(a.step, a.index, a.factor, a.shift + b.shift, a.terms | b.terms, node, max(a.source, b.source))
        for x, y in ((a, b), (b, a)):
            if (x.step, y.step) == (self.difference.of, self.difference.less):
                if x.index[:2] != y.index[:2]:
                    return Odd(node, "rows", x, y)
                if self.missing(y):
                    return Odd(node, "incomplete", y, x)
                shift = y.factor * float(self.values[y.index[0]].of(self.difference.less)[y.index[1]])
                return replace(x, shift=x.shift + shift)
        if a.step == b.step == self.weights.of and a.index[:2] == b.index[:2] and a.factor * b.factor < 0:
            opposite = abs(a.factor + b.factor) < SAME * abs(a.factor)
            one, most = (a, b) if a.factor > 0 else (b, a)  # `most` is the maximum so far
            if opposite and not (self.missing(a) or self.missing(b)):
                return replace(one, shift=one.shift + self._score(most))
        a, b = self._as_total(a), self._as_total(b)
        if a.step == b.step and a.index != b.index:
            return Odd(node, "unit" if a.index[0] != b.index[0] else "carried", a, b)
        if a.step != b.step or a.terms == -1:
            return Odd(node, "sum", a, b)
        if a.terms & b.terms:
            return Odd(node, "twice", a, b)
        if abs(a.factor - b.factor) > SAME * max(abs(a.factor), abs(b.factor)) and not self._negligible(a, b):
            return Odd(node, "factor", a, b)
        factor = a.factor if a.terms.bit_count() >= b.terms.bit_count() else b.factor
        return Label(a.step, a.index, factor, a.shift + b.shift, a.terms | b.terms, node, max(a.source, b.source))

    def _weight_of_one(self, label: Label, number: Number) -> Label | None:
        """Some programs write 1 for exp(m − m), the weight of the key that is the new maximum: the term of that key."""
        label, total = self._as_total(label), self.weights.total
        if label.step != total or label.factor <= 0 or number.how or number.value != 1.0:
            return None
        shares = np.abs(self.values[label.index[0]].log[label.index[1]] + math.log(label.factor))
        key = int(shares.argmin())
        if shares[key] > SAME or label.terms >> key & 1:
            return None
        return Label(total, label.index, label.factor, 0.0, 1 << key, label.made, label.source)

    def _as_total(self, label: Label) -> Label:
        if label.step != self.weights.name:
            return label
        return replace(label, step=self.weights.total, index=label.index[:2], terms=1 << label.index[2], by=0)

    def _negligible(self, a: Label, b: Label) -> bool:
        """Whether one side's terms hardly matter in the program, such as weights that are 0 in float."""
        if a.step != self.weights.total:
            (name, letters), *_ = self.sums[a.step].factors
            if name != self.weights.name or self.sums[a.step].index[:1] != letters[:1] or len(a.index) < 2:
                return False
        log = self.values[a.index[0]].log[a.index[1]]
        shares = [float(np.exp(log[numbers(each.terms)]).sum()) for each in (a, b)]
        parts = [abs(each.factor) * share for each, share in zip((a, b), shares, strict=True)]
        return min(parts) < 1e-5 * max(parts) or max(shares) < 1e-12

    def _may_shift(self, label: Label) -> bool:
        return label.step in (self.weights.of, self.difference.of) and not self.missing(label)

    def _exponential(self, node: int, a: Plain, value: float) -> Meaning:
        weights = self.weights
        if not isinstance(a, Label) or a.step != weights.of:
            return Odd(node, "unknown", a if isinstance(a, Label) else None)
        if missing := self.missing(a):
            return Odd(node, "incomplete", a, None, {"missing": missing})
        slope = a.factor * _LOG2 / weights.scale
        if abs(slope + 1) < SAME:
            return Number(value, "falling", a, node)
        if abs(slope - 1) > SAME:
            return Odd(node, "slope", a, None, {"slope": slope})
        unit, row, column = a.index
        argument = self._score(a) * _LOG2
        log = argument - float(self.values[unit].log[row, column])
        if abs(log) > _FAR:
            return Odd(node, "range", a, None, {"shift": a.shift * _LOG2})
        return Label(weights.name, a.index, math.exp(log), made=node, source=node)

    def _score(self, label: Label) -> float:
        """The value of a label of a score, from its factor: scale · score is log + lse; the lse is a factor that is the
        same for all, so any number of the row does."""
        unit, row, column = label.index
        return label.factor * float(self.values[unit].of(self.weights.of)[row, column]) + label.shift

    # ---- completeness ----------------------------------------------------------------------

    def expected_terms(self, label: Label) -> int:
        """The bits of all terms of a step."""
        if label.terms == -1:
            return -1
        seen, row = self.weights.seen, label.index[1]
        if label.step != self.weights.total:
            of = self.sums[label.step]
            letters = next((x for name, x in of.factors if name in (self.weights.name, self.difference.name)), "")
            at = dict(zip(of.index, label.index[1:], strict=True))
            if not letters:
                return (1 << of.count) - 1
            if letters[0] not in at:
                return sum(1 << i for i in range(of.count) if seen(i)[0] <= at.get(letters[1], 0) < seen(i)[1])
            row = at[letters[0]]
        first, end = seen(row)
        return (1 << end) - (1 << first)

    def missing(self, label: Label) -> int:
        """The bits of the terms that a sum lacks."""
        return 0 if label.terms == -1 else self.expected_terms(label) & ~label.terms

    def surplus(self, label: Label) -> int:
        return 0 if label.terms == -1 else label.terms & ~self.expected_terms(label)


def _elements(units: Sequence[Mapping[str, NDArray[Any]]]) -> dict[int, list[tuple[str, int, int, int]]]:
    """For the bits of each input value, the places where it is: (tensor, unit, row, column)."""
    elements: dict[int, list[tuple[str, int, int, int]]] = {}
    for unit, tensors in enumerate(units):
        for name, values in tensors.items():
            bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
            for row, numbers in enumerate(bits.tolist()):
                for column, number in enumerate(numbers):
                    elements.setdefault(number, []).append((name, unit, row, column))
    return elements


_NO_WEIGHTS = Weights("", "", "", 1.0, lambda row: (0, 0))
_NO_DIFFERENCE = Difference("", "", "", "")
"""Of operators without such steps: no label has an empty name."""


def _scaled(a: Plain, by: float, made: int = 0, corrected: int = 0) -> Plain:
    if isinstance(a, Number):
        return Number(a.value * by, a.how, a.of, a.node)
    if by == 0:
        return Number(0.0)
    return Label(a.step, a.index, a.factor * by, a.shift * by, a.terms, made or a.made, a.source, corrected or a.by)


def numbers(terms: int) -> list[int]:
    return [n for n in range(terms.bit_length()) if terms >> n & 1]
