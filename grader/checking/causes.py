"""What wrong rows look like: the results of exchanged or transposed inputs, right values in a wrong place or times a
factor, a known mistake, lost precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

import numpy as np

from grader.checking.samples import F32, F64, FEWEST_ERRORS, Sample, distance
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
    for first, second in itertools.combinations(range(len(names)), 2):
        order = list(range(len(names)))
        order[first], order[second] = second, first
        if _matches(operator, shape, number, samples, partial(_in_order, order)):
            words = {"first": names[first], "second": names[second], "order": ", ".join(names)}
            return Finding(kind="inputs_exchanged", certainty=EXACT, words=words)
    for place, name in enumerate(names):
        several = all(min(sample.tensors[place].shape) > 1 for sample in samples)
        if several and _matches(operator, shape, number, samples, partial(_by_columns, place)):
            return Finding(kind="transposed", certainty=EXACT, array=name)
    return None


def _in_order(order: list[int], tensors: Tensors) -> Tensors:
    """The tensors as a program sees them that takes a unit's memory for tensors in this order."""
    memory, found, first = np.concatenate([tensor.ravel() for tensor in tensors]), {}, 0
    for place in order:
        found[place] = memory[first : first + tensors[place].size].reshape(tensors[place].shape)
        first += tensors[place].size
    return [found[place] for place in range(len(tensors))]


def _by_columns(place: int, tensors: Tensors) -> Tensors:
    turned = tensors[place].reshape(tensors[place].shape[::-1]).T
    return [turned if number == place else tensor for number, tensor in enumerate(tensors)]


def _matches(
    operator: Operator, shape: Shape, number: int, samples: list[Sample], change: Callable[[Tensors], Tensors]
) -> bool:
    """Whether all wrong rows are right for changed inputs."""
    for sample in samples:
        with np.errstate(all="ignore"):
            if operator.independent_rows:
                values = operator.oracle(shape, change(sample.tensors), sample.rows)[number][:, sample.columns]
            else:  # which takes no longer, and other outputs may have fewer rows
                values = operator.oracle(shape, change(sample.tensors))[number][sample.rows][:, sample.columns]
        right = sample.expected[sample.rows][:, sample.columns]
        near = distance(sample.got[sample.rows][:, sample.columns], values, sample.near) <= 1
        if not near or distance(right, values, sample.near) <= 4:
            return False
    return bool(samples)


def by_alternates(operator: Operator, shape: Shape, number: int, samples: list[Sample]) -> Finding | None:
    best, found = 1.0, ""
    for alternate in operator.alternates():
        if alternate.tensor != number or alternate.rounding or alternate.unless(shape):
            continue
        worst = 0.0
        for sample in samples:
            values = _computed(operator, alternate, shape, sample)
            columns = sample.columns
            got = sample.got[sample.rows][:, columns]
            worst = max(worst, distance(got, values[:, columns], sample.near))
            if _energy(sample, values) > _energy(sample, sample.expected[sample.rows]) / 4:
                worst = np.inf  # else rounding errors alone could match the mistake
            if worst > best:
                break
        if worst < best:  # among equals, the first one is the likeliest
            best, found = worst, alternate.sentence
    return _known(found, CLAIMED, operator.outputs(shape)[number].name)


def _known(said: str, certainty: float, array: str) -> Finding | None:
    words = {"said": said.removesuffix(".")}
    return Finding(kind="known_mistake", certainty=certainty, array=array, words=words) if said else None


def _energy(sample: Sample, values: F32 | F64) -> float:
    """The sum of the squared differences between the sampled rows and `values`, in the columns that are wrong."""
    columns = sample.columns
    with np.errstate(all="ignore"):
        return float(np.square(sample.got[sample.rows][:, columns].astype(np.float64) - values[:, columns]).sum())


def _computed(operator: Operator, alternate: Alternate, shape: Shape, sample: Sample) -> F64:
    with np.errstate(all="ignore"):
        return mistaken_rows(operator, alternate, shape, sample.tensors, sample.rows)


def by_rounding(operator: Operator, shape: Shape, number: int, samples: list[Sample]) -> Finding | None:
    """Find the loss of precision that explains most of the errors in the sampled rows."""
    best, found = EXPLAINED, ""
    for alternate in operator.alternates():
        if alternate.tensor != number or not alternate.rounding or alternate.unless(shape):
            continue
        errors = [(s.got[s.rows] - s.expected[s.rows]).astype(np.float64).ravel() for s in samples]
        caused = [(_computed(operator, alternate, shape, s) - s.expected[s.rows]).ravel() for s in samples]
        mine, theirs = np.concatenate(errors), np.concatenate(caused)
        if len(mine) < FEWEST_ERRORS:
            return None
        with np.errstate(all="ignore"):
            correlation = float(mine @ theirs / np.sqrt((mine @ mine) * (theirs @ theirs)))
            alike = 1 / MOST_APART <= np.sqrt((mine @ mine) / (theirs @ theirs)) <= MOST_APART
        if correlation > best and alike:
            best, found = correlation, alternate.sentence
    return _known(found, PATTERN, operator.outputs(shape)[number].name)


def overflown(samples: list[Sample]) -> Finding | None:
    """Whole numbers of which only the lowest 8 or 16 bits are right."""
    if samples[0].got.dtype.kind not in "iu":
        return None
    off = np.concatenate([(s.got[s.rows].astype(np.int64) - s.expected[s.rows]).ravel() for s in samples])
    if np.count_nonzero(off) <= 2 or (off % 2**8).any():  # by chance once in 2^24
        return None
    return Finding(kind="output_overflows", certainty=PATTERN, values={"bits": 8 if (off % 2**16).any() else 16})


def moved(array: str, samples: list[Sample]) -> Finding | None:
    """Rows that hold the right values of other rows, of their unit or of another one; rows that may not have been
    written do not count."""
    moves = list[tuple[int, int, int, int]]()
    for sample in samples:
        for row in (int(row) for row in sample.rows if np.ptp(sample.got[row]) > 0):
            for unit, right in {sample.unit: sample.expected, **sample.others}.items():
                with np.errstate(invalid="ignore", over="ignore"):
                    nearest = int(np.abs(right - sample.got[row]).max(axis=1).argmin())
                if distance(sample.got[row], right[nearest], sample.near) <= 1:
                    moves.append((unit, nearest, sample.unit, row))
                    break
            else:
                return None
    if not moves or samples[0].expected.shape[1] == 1:  # among many numbers, one is often equal to another
        return None
    names = ("unit_found", "row_found", "unit_expected", "row_expected")
    values = dict(zip(names, moves[0], strict=True)) | {"column_found": 0, "column_expected": 0}
    return Finding(kind="stored_elsewhere", certainty=PATTERN, array=array, values=values)


def scaled(array: str, samples: list[Sample]) -> Finding | None:
    """Rows that are the right ones times one factor, or each times its own. One of 1 explains nothing: lost precision
    looks like it, too."""
    got = np.concatenate([s.got[s.rows] for s in samples]).astype(np.float64)
    right = np.concatenate([s.expected[s.rows] for s in samples]).astype(np.float64)
    near = samples[0].near

    def factor_of(got: F64, right: F64) -> float:
        """The factor; NaN if there is none."""
        with np.errstate(all="ignore"):
            factor = float(np.vdot(got, right) / np.vdot(right, right))
        if not np.isfinite(factor):
            return np.nan
        alike = np.allclose(got, factor * right, rtol=near.rtol, atol=near.atol * max(1.0, abs(factor)))
        return factor if alike and abs(factor) > 1e-3 else np.nan

    factor = factor_of(got, right)
    if got.size < 2 or abs(factor - 1) < 2 * near.rtol or np.allclose(got, right, rtol=near.rtol, atol=near.atol):
        return None
    if np.isfinite(factor):
        return Finding(kind="result_scaled", certainty=PATTERN, array=array, values={"factor": factor})
    factors = list(map(factor_of, got, right))
    if got.shape[1] == 1 or not np.isfinite(factors).all():  # one number is always another one times a factor
        return None
    values = {"low": min(factors), "high": max(factors)}
    return Finding(kind="rows_scaled", certainty=PATTERN, array=array, values=values)
