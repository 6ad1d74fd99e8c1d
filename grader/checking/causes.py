"""Explains wrong rows: inputs exchanged or transposed, right values in a wrong place, lost precision."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Literal

import numpy as np

from grader.checking.samples import CLOSE, F32, F64, FEWEST_ERRORS, Sample, distance
from grader.checking.wrong_places import listed
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
LOST_PRECISION = (
    "The values are close to the right ones: it looks like lost precision, such as a sum or a score kept in a smaller "
    "type, or a few terms of the sums missing or counted twice."
)


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
    array, words = operator.outputs(shape)[number].name, {"said": found.removesuffix(".")}
    return Finding(kind="known_mistake", certainty=CLAIMED, array=array, words=words) if found else None


def _energy(sample: Sample, values: F32 | F64) -> float:
    """The sum of the squared differences between the sampled rows and `values`, in the columns that are wrong."""
    columns = sample.columns
    with np.errstate(all="ignore"):
        return float(np.square(sample.got[sample.rows][:, columns].astype(np.float64) - values[:, columns]).sum())


def _computed(operator: Operator, alternate: Alternate, shape: Shape, sample: Sample) -> F64:
    with np.errstate(all="ignore"):
        return mistaken_rows(operator, alternate, shape, sample.tensors, sample.rows)


def by_rounding(operator: Operator, shape: Shape, number: int, samples: list[Sample]) -> str:
    """Find the loss of precision that explains most of the errors in the sampled rows."""
    best, found = EXPLAINED, ""
    for alternate in operator.alternates():
        if alternate.tensor != number or not alternate.rounding or alternate.unless(shape):
            continue
        errors = [(s.got[s.rows] - s.expected[s.rows]).astype(np.float64).ravel() for s in samples]
        caused = [(_computed(operator, alternate, shape, s) - s.expected[s.rows]).ravel() for s in samples]
        mine, theirs = np.concatenate(errors), np.concatenate(caused)
        if len(mine) < FEWEST_ERRORS:
            return ""
        with np.errstate(all="ignore"):
            correlation = float(mine @ theirs / np.sqrt((mine @ mine) * (theirs @ theirs)))
            alike = 1 / MOST_APART <= np.sqrt((mine @ mine) / (theirs @ theirs)) <= MOST_APART
        if correlation > best and alike:
            best, found = correlation, alternate.sentence
    return found


def overflown(samples: list[Sample]) -> Literal["16 bits", "8 bits"] | None:
    """How many of the lowest bits of whole numbers are right, if the others are not."""
    if samples[0].got.dtype.kind not in "iu":
        return None
    off = np.concatenate([(s.got[s.rows].astype(np.int64) - s.expected[s.rows]).ravel() for s in samples])
    if np.count_nonzero(off) <= 2 or (off % 2**8).any():  # by chance once in 2^24
        return None
    return "8 bits" if (off % 2**16).any() else "16 bits"


def misplaced(operator: Operator, samples: list[Sample]) -> str:
    """Explain rows that hold the right values of another place, or the right values times a factor."""
    if (
        len(written := [s for s in samples if np.ptp(s.got[s.rows]) > 0]) == 1
        and written[0].unit == 0 < len(samples) - 1
    ):
        first = _holds(written[0])
        if first is not None:
            one = operator.unit
            return (
                f"{one.capitalize()} 0 has the output of {one} {first}, and the other {operator.units_name} were not "
                f"written: every {one} goes to the place of {one} 0. Add its offset where the results are written or "
                "copied."
            )
    holds = {s.unit: _holds(s) for s in samples}
    if None not in holds.values():
        if len(set(holds.values())) == 1:
            what = f"The wrong rows hold the output of {operator.unit} {holds[samples[0].unit]}"
        else:
            pairs = [f"{operator.unit} {unit} has that of {operator.unit} {other}" for unit, other in holds.items()]
            what = f"Wrong {operator.units_name} hold the output of other {operator.units_name} ({listed(pairs)})"
        return (
            f"{what}: look at how the {operator.unit}'s number enters the addresses, and at results that are "
            "copied before they are ready."
        )
    several = all(min(s.expected.shape) > 1 for s in samples)  # the transpose of a single row is the same
    if several and all(distance(s.got.reshape(-1), s.expected.T.reshape(-1), s.near) <= 1 for s in samples):
        return "The output is the right one transposed: it must be row-major, row after row."
    far = any(distance(s.got[s.rows], s.expected[s.rows], s.near) > CLOSE for s in samples)
    if far and (shift := _row_moves(samples)):
        return shift
    return _factor(samples)


def _holds(sample: Sample) -> int | None:
    """The unit whose right output is in the wrong rows of this sample; None if there is none."""
    for other, values in sorted(sample.others.items()):
        if distance(sample.got[sample.rows], values[sample.rows], sample.near) <= 1:
            return other
    return None


def _row_moves(samples: list[Sample]) -> str:
    moves = []
    for sample in samples:
        for row in sample.rows:
            with np.errstate(invalid="ignore", over="ignore"):
                off = np.abs(sample.expected - sample.got[row]).max(axis=1)
            nearest = int(np.nanargmin(off)) if not np.isnan(off).all() else int(row)
            if nearest == row or distance(sample.got[row], sample.expected[nearest], sample.near) > 1:
                return ""
            moves.append((int(row), nearest))
    row, source = moves[0]
    count, width = samples[0].expected.shape
    if len({(source - row) % count for row, source in moves}) == 1 and (width > 1 or len(moves) > 1):
        by = (source - row + count // 2) % count - count // 2
        return (
            f"Each wrong row holds the right values of the row {abs(by)} {'below' if by > 0 else 'above'} it: "
            "look at how the row number is computed."
        )
    if width == 1:
        return ""  # among many numbers, one is often equal to another
    return (
        f"The wrong rows hold the right values of other rows (row {row} holds those of row {source}): look at how "
        "threads and tiles are mapped to rows."
    )


def _factor(samples: list[Sample]) -> str:
    got = np.concatenate([s.got[s.rows].ravel() for s in samples]).astype(np.float64)
    right = np.concatenate([s.expected[s.rows].ravel() for s in samples]).astype(np.float64)
    near = samples[0].near
    if len(got) < 2 or not np.isfinite(got).all() or not (right @ right) > 0:
        return ""
    factor = float(got @ right / (right @ right))
    if abs(factor - 1) < 2 * near.rtol or np.allclose(right, factor * right, rtol=near.rtol, atol=near.atol):
        return ""  # a factor of 1 explains nothing; lost precision looks like this too
    if abs(factor) > 1e-3 and np.allclose(got, factor * right, rtol=near.rtol, atol=near.atol * abs(factor)):
        said = f"Every wrong row is the right one times {factor:.4g}"
        if abs(factor * samples[0].expected.shape[1] - 1) < near.rtol:
            return f"{said}, which is 1 over the number of columns: each term is added to the sum once for each column."
        return f"{said}."
    if samples[0].expected.shape[1] == 1:
        return ""  # one number is always another one times a factor
    per_row = []
    for sample in samples:
        for row in sample.rows:
            g, e = sample.got[row].astype(np.float64), sample.expected[row].astype(np.float64)
            c = float(g @ e / (e @ e)) if e @ e > 0 else 0.0
            if abs(c) < 1e-3 or not np.allclose(g, c * e, rtol=near.rtol, atol=near.atol * max(1.0, abs(c))):
                return ""
            per_row.append(c)
    low, high = min(per_row), max(per_row)
    return (
        f"Every wrong row is the right one times a different factor ({low:.3g} to {high:.3g} in the sampled rows): "
        "look at what each row is divided by."
    )
