"""Finds the smallest input on which a wrong program errs, by experiments: all that can be 0 is 0.

A wrong output of a whole testcase shows that something is wrong; one input value that goes astray shows what. From an
input at which the program errs, as much as possible is set to 0, in halves (delta debugging: Zeller and Hildebrandt,
Simplifying and isolating failure-inducing input, 2002). It works for every operator, and no mistake has to be foreseen.
A table of places, such as the rows of a sparse matrix, stays as it is. Where nothing but zeros is an error, too, as for
a histogram that counts too few, an input errs if it changes the output of zeros in another way than it should.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.checking.probes.weights import SURE, made
from grader.checking.scan import apart
from grader.findings import Finding
from grader.operators import Operator, Shape, Tensor
from grader.operators.tolerance import Tolerance, errors_of, limit_of

Array = NDArray[Any]
Run = Callable[[Sequence[Array]], Sequence[Array] | None]
"""The program's output tensors for these input tensors; None if it wrote none."""

MOST_RUNS = 80
FEWEST_VALUES = 100
"""A smaller input shows less: which values count is seen where some do."""
MOST_VALUES = 1 << 20
_MOST_NAMED = 3
_FACTOR = 1e-3
"""Factors of less are roundings."""


class _NoMoreRuns(Exception):
    """The experiments take too long."""


@dataclass
class _Search:
    """`kept`: the smallest input so far at which the program errs, and `outputs`, what it wrote there. `zero`: what it
    wrote, and should have written, for zeros, if it errs there."""

    operator: Operator
    shape: Shape
    tolerance: Tolerance
    run: Run
    kept: list[Array]
    outputs: Sequence[Array] = ()
    runs: int = 0
    zero: tuple[Sequence[Array], Sequence[Array]] | None = None

    def errs(self, tensors: list[Array]) -> bool:
        """Whether the program errs on these tensors, which are then kept."""
        if self.runs == MOST_RUNS:
            raise _NoMoreRuns
        self.runs += 1
        outputs = self.run(tensors)
        if outputs is None or not any(wrong.any() for wrong in self.wrong(tensors, outputs)):
            return False
        self.kept, self.outputs = tensors, outputs
        return True

    def repeats(self) -> bool:
        """Whether the program writes the same again for `kept`. Experiments show nothing of a race."""
        again = self.run(self.kept)
        return again is None or not any(apart.any() for apart in self.all_apart(again, self.outputs))

    def right(self, tensors: Sequence[Array]) -> list[Array]:
        with np.errstate(all="ignore"):
            found = self.operator.oracle(self.shape, tensors)
        outputs = self.operator.outputs(self.shape)
        return [values.astype(tensor.type.computed) for values, tensor in zip(found, outputs, strict=True)]

    def wrong(self, tensors: Sequence[Array], outputs: Sequence[Array]) -> list[NDArray[np.bool_]]:
        pairs: list[Sequence[Array]] = [outputs, self.right(tensors)]
        if self.zero is not None:
            pairs = [
                [values.astype(np.float64) - of_zero for values, of_zero in zip(each, zeros, strict=True)]
                for each, zeros in zip(pairs, self.zero, strict=True)
            ]
        return self.all_apart(*pairs)

    def all_apart(self, got: Sequence[Array], right: Sequence[Array]) -> list[NDArray[np.bool_]]:
        return [self.apart(number, *both) for number, both in enumerate(zip(got, right, strict=True))]

    def apart(self, number: int, got: Array, right: Array) -> NDArray[np.bool_]:
        """Which values of output tensor `number` differ."""
        limit = limit_of(self.tolerance, self.operator.outputs(self.shape)[number].name)
        return np.asarray(~(errors_of(got, right) <= limit.allowed(right)))

    def shrink(self, number: int) -> None:
        """Set as much of tensor `number` to 0 as possible."""
        size = self.kept[number].size
        if self.errs(self._only(number, 0, 0)) or size == 1:
            return
        fine, low, high = self.kept[number], 0, size
        while high - low > 1:  # values before `low` do no harm, those before `high` do
            middle = (low + high) // 2
            low, high = (low, middle) if self.errs(self._only(number, 0, middle, fine)) else (middle, high)
        if self.errs(self._only(number, high - 1, high, fine)):
            return
        low, end = 0, high - 1
        while end - low > 1:  # harm is done from `low` on, and none from `end` on
            middle = (low + end) // 2
            low, end = (middle, end) if self.errs(self._only(number, middle, high, fine)) else (low, middle)
        two = self._only(number, low, low + 1, fine)
        two[number] = two[number] + self._only(number, high - 1, high, fine)[number]
        self.errs(two)

    def _only(self, number: int, first: int, end: int, of: Array | None = None) -> list[Array]:
        values = np.zeros_like(self.kept[number])
        values.ravel()[first:end] = (self.kept[number] if of is None else of).ravel()[first:end]
        return [values if each == number else tensor for each, tensor in enumerate(self.kept)]


def smallest_input(
    operator: Operator, shape: Shape, tolerance: Tolerance, tensors: Sequence[Array], run: Run
) -> Finding | None:
    """What the smallest input shows; None if the program does not err again, or nothing can be left out. `tensors` are
    those of an input on which it errs, of an operator with one unit."""
    search = _Search(operator, shape, tolerance, run, [np.ascontiguousarray(tensor) for tensor in tensors])
    chosen = _numbers(operator, shape, tensors)
    if not chosen or not search.errs(search.kept) or not search.repeats():
        return None
    whole, by_size = search.kept, sorted(chosen, key=lambda each: -tensors[each].size)
    try:
        for number in by_size:
            search.shrink(number)
        if not any(search.kept[number].any() for number in chosen):
            search.zero = search.outputs, search.right(search.kept)
            if not search.errs(whole):
                search.zero = None
            for number in by_size if search.zero else ():
                search.shrink(number)
    except _NoMoreRuns:
        pass
    return _described(search, chosen) if search.repeats() else None


def _numbers(operator: Operator, shape: Shape, tensors: Sequence[Array]) -> list[int]:
    """The tensors that are numbers to compute with. Integers in ascending order are a table of places, and other
    integers next to one are places, too."""
    whole = [number for number, tensor in enumerate(operator.inputs(shape)) if tensor.type.is_integer]
    places = any(tensors[n].size > 2 and (np.diff(tensors[n].ravel().astype(np.int64)) >= 0).all() for n in whole)
    return [number for number in range(len(tensors)) if number not in whole or not places]


def _described(search: _Search, chosen: Sequence[int]) -> Finding | None:
    operator, shape, kept = search.operator, search.shape, search.kept
    inputs, outputs = operator.inputs(shape), operator.outputs(shape)
    left = {number: np.flatnonzero(kept[number]) for number in chosen}
    if any(len(places) > _MOST_NAMED for places in left.values()):
        return None
    number, wrong = next((n, w) for n, w in enumerate(search.wrong(kept, search.outputs)) if w.any())
    got, right, tensor = search.outputs[number], search.right(kept)[number], outputs[number]
    at = int(wrong.argmax())
    told = apart(got.flat[at], right.flat[at])
    pairs = [(each, place) for each in left for place in left[each].tolist()]
    facts: dict[str, Any] = {
        "zeros": " and ".join(inputs[each].name for each in chosen),
        "given": ", ".join(f"{_place(inputs[n], p)} = {_number(kept[n].flat[p])}" for n, p in pairs),
        "first": _place(tensor, at), "got": told[0], "expected": told[1],
        "how": "value" if pairs else "zeros", "array": tensor.name,
    }  # fmt: skip
    if (alone := next((each for each in chosen if len(left[each]) == 1), None)) is not None:
        place = int(left[alone][0])
        facts |= {"element": _place(inputs[alone], place), "tensor": inputs[alone].name}
        facts |= _effect(search, alone, number)
        facts |= {"before": place} if place > 1 and search.zero is None else {}
    return made("smallest_input", SURE, **facts)


def _effect(search: _Search, alone: int, number: int) -> dict[str, Any]:
    """Where the one value of tensor `alone` changes output tensor `number`, and where it should."""
    tensor, kept = search.operator.outputs(search.shape)[number], search.kept
    got, right = search.outputs[number], search.right(kept)[number]
    none = search.right([np.zeros_like(values) if n == alone else values for n, values in enumerate(kept)])[number]
    changed = search.apart(number, got, none if search.zero is None else search.zero[0][number])
    should = search.apart(number, right, none)
    lost, gained = should & ~changed, changed & ~should
    if not np.isfinite(got).all():
        return {"how": "infinite"}
    if lost.any() and not gained.any():
        return {"how": "missing_in_part" if changed.any() else "missing", "right_at": _places(tensor, lost)}
    if lost.any():
        return {"how": "moved", "right_at": _places(tensor, should), "got_at": _places(tensor, changed)}
    if gained.any():
        return {"how": "extra", "got_at": _places(tensor, gained)}
    if should.any() and (factor := _factor(got, right, none, should)) is not None:
        # Half of the value counts so many times, too, unless exponentials are in between.
        half = [(values * 0.5).astype(values.dtype) if n == alone else values for n, values in enumerate(kept)]
        outputs, right = search.run(half), search.right(half)[number]
        counts = search.apart(number, right, none)
        again = _factor(outputs[number], right, none, counts) if outputs is not None and counts.any() else None
        if again is not None and abs(again - factor) < _FACTOR * abs(factor):
            return {"how": "scaled", "right_at": _places(tensor, should), "factor": factor}
    return {}


def _factor(got: Array, right: Array, none: Array, should: NDArray[np.bool_]) -> float | None:
    """How many times a value counts where it `should`; None if it is as often as it should, or differs."""
    ratios = (got.astype(np.float64) - none)[should] / (right.astype(np.float64) - none)[should]
    one = float(ratios[0])
    return one if np.ptp(ratios) < _FACTOR * abs(one) and abs(one - 1) > _FACTOR else None


def _place(tensor: Tensor, number: int) -> str:
    if tensor.size == 1:
        return tensor.name
    row, column = divmod(number, tensor.columns)
    return f"{tensor.name}[{number}]" if tensor.is_vector else f"{tensor.name}[{row}, {column}]"


def _places(tensor: Tensor, chosen: NDArray[np.bool_]) -> str:
    numbers = np.flatnonzero(chosen)
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == 1:
        return _place(tensor, first)
    if len(numbers) == last - first + 1:
        return f"{_place(tensor, first)} to {_place(tensor, last)}"
    others = len(numbers) - 1
    return f"{_place(tensor, first)} and {others} other{'s' if others > 1 else ''}"


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
