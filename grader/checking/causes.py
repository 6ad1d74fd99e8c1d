"""What wrong rows look like: the results of exchanged or transposed inputs, right values in a wrong place or times a
factor, a known mistake, lost precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

from grader.checking.samples import F64, FEWEST_ERRORS, Sample, distance
from grader.findings import CLAIMED, Finding
from grader.operators import Alternate, Operator, Shape
from grader.operators.base import Tensors
from grader.operators.returned import mistaken_rows

EXPLAINED = 0.7
"""Lost precision counts as found if the errors that it would cause correlate at least this much with the errors in the
output. A correlation of 0.7 explains half of the squared errors; unrelated errors correlate by less than 0.1."""
MOST_APART = 8.0
"""Errors that are this many times as large, or as small, have another cause."""

EXACT = 0.92
"""The certainty of a finding that follows from all values: above the watch, which sees only its first consequence."""
MOST_FLOPS = 1 << 29
"""The largest unit for which whole gradients are computed again."""
PATTERN = 0.4
"""The certainty of what a wrong output looks like: said of a test that nothing else explains, and of no other."""


def exchanged(operator: Operator, shape: Shape, number: int, samples: list[Sample]) -> Finding | None:
    """Two inputs that were taken for each other, or one that was read column by column."""
    names = [tensor.name for tensor in operator.inputs(shape)]
    if any(not np.issubdtype(tensor.dtype, np.floating) for sample in samples for tensor in sample.tensors):
        return None  # a program that takes indices for values does not get as far as a wrong answer
    if not operator.independent_rows and operator.flops(shape) > MOST_FLOPS * operator.units(shape):
        return None

    def explained(change: Callable[[Tensors], Tensors]) -> bool:
        def computed(sample: Sample) -> F64:
            if operator.independent_rows:
                return operator.oracle(shape, change(sample.tensors), sample.rows)[number]
            # It takes no longer, and other outputs may have fewer rows.
            return operator.oracle(shape, change(sample.tensors))[number][sample.rows]

        return _farthest(samples, computed) <= 1

    for first, second in itertools.combinations(range(len(names)), 2):
        if explained(partial(_taken_for, first, second)):
            words = {"first": names[first], "second": names[second], "order": ", ".join(names)}
            return Finding(kind="inputs_exchanged", certainty=EXACT, words=words)
    for place, name in enumerate(names):
        several = all(min(sample.tensors[place].shape) > 1 for sample in samples)
        if several and explained(partial(_by_columns, place)):
            return Finding(kind="transposed", certainty=EXACT, array=name)
    return None


def _taken_for(first: int, second: int, tensors: Tensors) -> Tensors:
    """The tensors as a program sees them that takes one for another in a unit's memory."""
    order = list(range(len(tensors)))
    order[first], order[second] = second, first
    memory = np.concatenate([tensor.ravel() for tensor in tensors])
    parts = np.split(memory, np.cumsum([tensors[place].size for place in order])[:-1])
    return [parts[order.index(place)].reshape(tensor.shape) for place, tensor in enumerate(tensors)]


def _by_columns(place: int, tensors: Tensors) -> Tensors:
    turned = tensors[place].reshape(tensors[place].shape[::-1]).T
    return [turned if number == place else tensor for number, tensor in enumerate(tensors)]


def _farthest(samples: list[Sample], computed: Callable[[Sample], F64]) -> float:
    """The largest difference of the wrong values from the computed ones, as a multiple of the allowed one; infinite if
    the right values are about as near."""
    worst = 0.0
    for sample in samples:
        with np.errstate(all="ignore"):
            values = computed(sample)[:, sample.columns]
            got, right = (each[:, sample.columns].astype(np.float64) for each in (sample.got, sample.right))
            far = np.square(got - values).sum() > np.square(got - right).sum() / 4
        worst = max(worst, np.inf if far else distance(got, values, sample.near))
    return worst


def by_alternates(operator: Operator, shape: Shape, number: int, samples: list[Sample]) -> Finding | None:
    """Find the mistake that gives all wrong values, and not only right ones with rounding errors."""
    best, found = 1.0, ""
    for alternate in _alternates(operator, shape, number, rounding=False):
        worst = _farthest(samples, _computing(operator, alternate, shape))
        if worst < best:  # among equals, the first one is the likeliest
            best, found = worst, alternate.sentence
    return _known(found, CLAIMED, operator.outputs(shape)[number].name)


def by_rounding(operator: Operator, shape: Shape, number: int, samples: list[Sample]) -> Finding | None:
    """Find the loss of precision that explains most of the errors in the sampled rows."""
    if sum(sample.got.size for sample in samples) < FEWEST_ERRORS:
        return None
    best, found = EXPLAINED, ""
    errors = np.concatenate([(s.got - s.right).astype(np.float64).ravel() for s in samples])
    for alternate in _alternates(operator, shape, number, rounding=True):
        computed = _computing(operator, alternate, shape)
        with np.errstate(all="ignore"):
            caused = np.concatenate([(computed(s) - s.right).ravel() for s in samples])
            correlation = float(errors @ caused / np.sqrt((errors @ errors) * (caused @ caused)))
            alike = 1 / MOST_APART <= np.sqrt((errors @ errors) / (caused @ caused)) <= MOST_APART
        if correlation > best and alike:
            best, found = correlation, alternate.sentence
    return _known(found, PATTERN, operator.outputs(shape)[number].name)


def _alternates(operator: Operator, shape: Shape, number: int, *, rounding: bool) -> list[Alternate]:
    found = (each for each in operator.alternates() if each.tensor == number and each.rounding == rounding)
    return [each for each in found if not each.unless(shape)]


def _computing(operator: Operator, alternate: Alternate, shape: Shape) -> Callable[[Sample], F64]:
    return lambda sample: mistaken_rows(operator, alternate, shape, sample.tensors, sample.rows)


def _known(said: str, certainty: float, array: str) -> Finding | None:
    words = {"said": said.removesuffix(".")}
    return Finding(kind="known_mistake", certainty=certainty, array=array, words=words) if said else None


def overflown(samples: list[Sample]) -> Finding | None:
    """Whole numbers of which only the lowest 8 or 16 bits are right."""
    if samples[0].got.dtype.kind not in "iu":
        return None
    off = np.concatenate([(s.got.astype(np.int64) - s.right).ravel() for s in samples])
    if np.count_nonzero(off) <= 2 or (off % 2**8).any():  # by chance once in 2^24
        return None
    return Finding(kind="output_overflows", certainty=PATTERN, values={"bits": 8 if (off % 2**16).any() else 16})


def moved(array: str, samples: list[Sample]) -> Finding | None:
    """Rows that hold the right values of other rows, of their unit or of another one; rows that may not have been
    written do not count."""
    if samples[0].right.shape[1] == 1:  # among many numbers, one is often equal to another
        return None
    found = None
    for sample in samples:
        for row, got in zip(sample.rows.tolist(), sample.got, strict=True):
            if np.ptp(got) > 0:
                with np.errstate(invalid="ignore", over="ignore"):
                    differences = np.abs(sample.others - got).max(axis=2)
                place, nearest = (int(n) for n in np.unravel_index(differences.argmin(), differences.shape))
                if distance(got, sample.others[place, nearest], sample.near) > 1:
                    return None
                found = found or (sample.numbers[place], nearest, 0, sample.unit, row, 0)
    if found is None:
        return None
    names = [f"{name}_{which}" for which in ("found", "expected") for name in ("unit", "row", "column")]
    return Finding(kind="stored_elsewhere", certainty=PATTERN, array=array, values=dict(zip(names, found, strict=True)))


def scaled(array: str, samples: list[Sample]) -> Finding | None:
    """Rows that are the right ones times one factor, or each times its own. One of 1 explains nothing: lost precision
    looks like it, too."""
    got = np.concatenate([sample.got for sample in samples]).astype(np.float64)
    right = np.concatenate([sample.right for sample in samples]).astype(np.float64)
    near = samples[0].near

    def explain(factors: F64) -> bool:
        allowed = near.largest * np.maximum(1, np.abs(factors))
        return bool(
            np.isfinite(factors).all()
            and (np.abs(factors) > 1e-3).all()
            and np.isclose(got, factors * right, rtol=near.relative, atol=allowed).all()
        )

    with np.errstate(all="ignore"):
        factor = (got * right).sum() / np.square(right).sum()
        factors = (got * right).sum(axis=1, keepdims=True) / np.square(right).sum(axis=1, keepdims=True)
        if got.size < 2 or abs(factor - 1) < 2 * near.relative or explain(np.ones(1)):
            return None
        if explain(factor):
            return Finding(kind="result_scaled", certainty=PATTERN, array=array, values={"factor": factor})
        if got.shape[1] == 1 or not explain(factors):  # one number is always another one times a factor
            return None
    values = {"low": factors.min(), "high": factors.max()}
    return Finding(kind="rows_scaled", certainty=PATTERN, array=array, values=values)
