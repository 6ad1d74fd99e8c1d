"""Tells a student what their wrong output looks like and where to look in the code.

It combines three kinds of evidence into a few sentences:
- where the wrong values are (which tensor, batches, rows, columns; NaN or zero), as counted by the checker;
- whether wrong rows equal right values in a wrong place (another batch or row, a transpose) or times a factor;
- whether wrong rows equal one of the operator's alternates, that is, a known wrong way to compute it.

A match counts only if every sampled wrong row agrees to about a tenth of the tolerance (or, where the tolerance is a
multiple of rounding errors, to these), or if lost precision explains most of the errors. So a diagnosis is a statement
about the numbers, not a guess. Evidence that explains nothing is left out.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import UsageError
from grader.checking.check import Check
from grader.checking.scan import TensorErrors
from grader.operators import Alternate, Operator, Shape
from grader.operators.base import Step, Tensors
from grader.operators.layout import read_exactly
from grader.sandbox.quarantine import open_output

SAMPLED_UNITS = 3
SAMPLED_ROWS = 6
COMPARED_UNITS = 16
"""Up to this many units, a wrong unit is compared with all others; with more, only with its neighbours and both
ends."""
COMPARED_VALUES = 32
"""If this many values equal the input's, that is no coincidence."""
RTOL = 1e-3
"""How close a sampled value must be to count as equal, in addition to what the tensor's tolerance says (`Limit.match`).
float32 attention is within 1e-5 of float64."""
PRECISION_ROWS = 32
EXPLAINED = 0.7
"""Lost precision is recognised if the errors that it would make and those found have at least this correlation: then it
explains half of their energy. Among the sampled values, chance stays below a tenth."""
FEWEST_ERRORS = 16
"""Fewer values go along with any errors."""

TILES = (16, 32, 64, 128, 256)

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Diagnosis:
    """What a wrong output looks like. `where` says which values are wrong and `cause` why, both '' if unknown. `steps`
    are the suspect steps of the computation, the likeliest first."""

    where: str = ""
    cause: str = ""
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, (self.where, self.cause)))


def diagnose(check: Check, operator: Operator, input: Path, expected: Path, got: Path) -> Diagnosis | None:
    """Diagnose a wrong output; None if there is nothing to say about it.

    Only checks of kind "values", "precision" and "size" get a diagnosis; the other kinds explain themselves.
    """
    if check.kind == "size":
        return Diagnosis(cause="The output file has the wrong size.", steps=("write",))
    if check.kind not in ("values", "precision") or not check.errors:
        return None
    try:
        found = _examine(check, operator, operator.read_header(input), input, expected, got)
    except (OSError, UsageError):
        return None
    return found if str(found) else None


def _examine(check: Check, operator: Operator, shape: Shape, input: Path, expected: Path, got: Path) -> Diagnosis:
    if check.kind == "precision":
        number = next(i for i, found in enumerate(check.precision) if found.sloppy)
        samples = _samples(
            operator, shape, number, check.errors[number], input, expected, got, PRECISION_ROWS, only_wrong=False
        )
        cause, steps = _rounding(operator, shape, number, samples)
        return Diagnosis("", *((cause, steps) if cause else _LOST_PRECISION))
    number, errors = next((i, e) for i, e in enumerate(check.errors) if e.wrong)
    tensors = _which_tensors(check.errors)
    if check.nan == check.values:
        cause = (
            "Every value is NaN: look for 0/0 (a sum l that stays 0), inf − inf (a maximum m that starts at −inf "
            "and is subtracted from itself), or reading memory that was never written."
        )
        return Diagnosis(tensors, cause, ("rescale", "weight"))
    where = " ".join(filter(None, (tensors, _where(operator, errors))))
    return Diagnosis(where, *_cause(check, operator, shape, number, errors, input, expected, got))


def _cause(
    check: Check,
    operator: Operator,
    shape: Shape,
    number: int,
    errors: TensorErrors,
    input: Path,
    expected: Path,
    got: Path,
) -> tuple[str, tuple[Step, ...]]:
    """Return (the cause, suspect steps), both empty if nothing explains the values."""
    if check.nan:
        return _nan(check, operator, errors), ("weight",)
    if errors.zeros == errors.wrong:
        cause = (
            "Every wrong value is exactly 0: this part of the output was never written. Look at the launch "
            "(cudaGetLastError after it), the grid size, and the copy back to the host."
        )
        some_columns, some_rows = (not (each > 0).all() for each in (errors.by_column, errors.by_row))
        return cause, ("store",) if some_columns else ("row", "launch") if some_rows else ("launch",)
    if _begins_with_the_input(operator, shape, input, got):
        cause = (
            "The output begins with the input's own values: the results never reached the array that was written. "
            "Is the cudaMemcpy back to the host (cudaMemcpyDeviceToHost) missing?"
        )
        return cause, ("copy_back",)
    samples = _samples(operator, shape, number, errors, input, expected, got, SAMPLED_ROWS)
    if not samples:
        return "", ()
    finite = check.max_finite_error if check.infinite == 0 else None

    def rounding(_: list[_Sample]) -> Explanation:
        if finite is None or not any(alternate.rounding for alternate in operator.alternates()):
            return NOTHING
        more = _samples(operator, shape, number, errors, input, expected, got, PRECISION_ROWS, only_wrong=False)
        return _rounding(operator, shape, number, more)

    for explain in (_constant, partial(_alternate, operator, shape, number), rounding, partial(_misplaced, operator)):
        cause, steps = explain(samples)
        if cause:
            return cause, steps
    if finite is not None and finite < 20 * errors.limit.largest:
        sentence, steps = _LOST_PRECISION
        return f"The largest error is {finite:.2g}. {sentence}", steps
    wrong = errors.by_unit > 0
    if not wrong[0] and wrong[1:].all() and len(wrong) > 1:
        one = operator.unit
        return f"Only {one} 0 is right: look at the offset per {one}, in the kernel and on the host.", ("batch", "read")
    return "", ()


def _begins_with_the_input(operator: Operator, shape: Shape, input: Path, got: Path) -> bool:
    """True if the output begins with the values that follow the input's header: the program wrote its input buffer."""
    kinds = [layouts[0].type for layouts in (operator.input_layouts(shape), operator.output_layouts(shape))]
    ours, theirs = (np.empty(COMPARED_VALUES, kind.storage) for kind in kinds)
    output = open_output(got)
    try:
        if kinds[0] != kinds[1] or not stat.S_ISREG(os.fstat(output).st_mode) or not read_exactly(output, theirs, 0):
            return False
        with input.open("rb") as source:
            return read_exactly(source.fileno(), ours, operator.header_bytes) and bool(np.array_equal(ours, theirs))
    finally:
        os.close(output)


# ---- where ----------------------------------------------------------------------------------------------------


def _which_tensors(errors: tuple[TensorErrors, ...]) -> str:
    wrong = [e.tensor for e in errors if e.wrong]
    right = [e.tensor for e in errors if not e.wrong]
    if not right:
        return ""
    return f"{_and(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong, {_and(right)} right."


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _where(operator: Operator, errors: TensorErrors) -> str:
    phrases = [
        _units(operator, errors.by_unit > 0),
        _lines("row", errors.by_row > 0),
        _lines("column", errors.by_column > 0),
    ]
    said = [phrase for phrase in phrases if phrase]
    return f"Where: {'; '.join(said)}." if said else ""


def _units(operator: Operator, wrong: Bools) -> str:
    one, many = operator.unit, operator.units_name
    numbers = np.flatnonzero(wrong)
    if len(numbers) == len(wrong):
        return ""
    if len(numbers) == 1:
        return f"only {one} {numbers[0]} of {len(wrong)} is wrong"
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == last - first + 1:
        if last == len(wrong) - 1 and first == 1:
            return f"only {one} 0 is right, all {many} after the first are wrong (look at the offset per {one})"
        if last == len(wrong) - 1:
            return f"{many} from {first} on are wrong, those before are right"
        return f"{many} {first} to {last} of {len(wrong)} are wrong"
    steps = np.unique(np.diff(numbers))
    if len(steps) == 1:
        return f"every {_ordinal(int(steps[0]))} {one} is wrong, from {one} {first} on"
    return f"{len(numbers)} of {len(wrong)} {many} are wrong, the first is {one} {first}"


def _ordinal(number: int) -> str:
    return {2: "second", 3: "third", 4: "fourth"}.get(number, f"{number}th")


def _lines(name: str, wrong: Bools) -> str:
    numbers = np.flatnonzero(wrong)
    if len(numbers) == len(wrong):
        return ""
    if len(numbers) == 1:
        return f"only {name} {numbers[0]} is wrong"
    first, last = int(numbers[0]), int(numbers[-1])
    if len(numbers) == last - first + 1:
        return f"only {name}s {first} to {last} of {len(wrong)} are wrong"
    for tile in TILES:
        if len(wrong) % tile or len(wrong) == tile:
            continue
        folded = wrong.reshape(-1, tile)
        inside = np.flatnonzero(folded[0])
        if (folded == folded[0]).all() and len(inside) == inside[-1] - inside[0] + 1:
            if len(inside) == 1:
                return f"{name} {inside[0]} of every tile of {tile} is wrong"
            return f"{name}s {inside[0]} to {inside[-1]} of every tile of {tile} are wrong"
    return f"{len(numbers)} of {len(wrong)} {name}s are wrong, the first is {name} {first}"


def _nan(check: Check, operator: Operator, errors: TensorErrors) -> str:
    share = "All of the wrong values are" if check.nan == check.wrong else f"{check.nan:,} of the wrong values are"
    units = int((errors.nan_by_unit > 0).sum())
    what = operator.unit if units == 1 else operator.units_name
    return (
        f"{share} NaN, in {units:,} {what}: look for 0/0 or inf − inf where a row's exponentials all underflow or "
        "overflow (is the maximum subtracted before exp?), and for memory read before it is written."
    )


# ---- sampled rows ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Nearness:
    """How close values must be to count as equal, absolutely and relative to the value."""

    atol: float
    rtol: float


@dataclass(frozen=True)
class _Sample:
    """Some wrong rows of one unit, with the data that may explain them."""

    unit: int
    near: _Nearness
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    """The columns in which anything is wrong: a mistake may spare a part of the accumulators of a thread."""
    tensors: tuple[F32, ...]
    tensors_of: Callable[[int], Tensors]
    """The input tensors of another unit."""
    got: F32
    """The unit's whole output tensor, as written."""
    expected: F32
    others: dict[int, F32]
    """Expected outputs of a few other units."""


def _samples(
    operator: Operator,
    shape: Shape,
    number: int,
    errors: TensorErrors,
    input: Path,
    expected: Path,
    got: Path,
    most_rows: int,
    *,
    only_wrong: bool = True,
) -> list[_Sample]:
    """Some wrong rows of some wrong units, or any rows of any units."""
    wrong_units = np.flatnonzero(errors.by_unit) if only_wrong else np.arange(len(errors.by_unit))
    right_layout, layout = operator.expected_layouts(shape)[number], operator.output_layouts(shape)[number]
    near = _Nearness(errors.limit.match, max(RTOL, 2 * layout.type.roundoff))
    chosen = np.unique(wrong_units[np.linspace(0, len(wrong_units) - 1, SAMPLED_UNITS).astype(int)])
    columns = np.flatnonzero(errors.by_column) if errors.wrong else np.arange(len(errors.by_column))
    last = operator.units(shape) - 1
    output = open_output(got)
    try:
        found = os.fstat(output)
        if not stat.S_ISREG(found.st_mode):
            return []
        with input.open("rb") as source, expected.open("rb") as kept:
            samples = []
            for unit in (int(u) for u in chosen):
                tensors = operator.read_unit(source, shape, unit)
                mine = layout.read(output, unit)
                right = right_layout.read(kept.fileno(), unit)
                if mine is None or right is None:
                    return []
                wrong_rows = _wrong_rows(mine, right, errors.limit.largest) if only_wrong else np.arange(len(mine))
                if not len(wrong_rows):
                    continue
                picks = np.unique(np.linspace(0, len(wrong_rows) - 1, most_rows).astype(int))
                others = {}
                close = set(range(last + 1)) if last < COMPARED_UNITS else {0, unit - 1, unit + 1, last}
                for other in close - {unit}:
                    if 0 <= other <= last:
                        values = right_layout.read(kept.fileno(), other)
                        if values is not None:
                            others[other] = values
                tensors_of = partial(_read_unit, operator, shape, input)
                rows = wrong_rows[picks]
                samples.append(_Sample(unit, near, rows, columns, tensors, tensors_of, mine, right, others))
            return samples
    finally:
        os.close(output)


def _read_unit(operator: Operator, shape: Shape, input: Path, unit: int) -> Tensors:
    with input.open("rb") as source:
        return operator.read_unit(source, shape, unit)


def _wrong_rows(got: F32, expected: F32, tolerance: float) -> NDArray[np.intp]:
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.abs(got - expected).max(axis=1)
    return np.flatnonzero(~(off <= tolerance))


def _distance(got: F32, alternate: F32 | F64, near: _Nearness) -> float:
    """The largest difference, as a multiple of what still counts as equal; at most 1 is a match."""
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        distance = float((np.abs(got - alternate) / (near.atol + near.rtol * np.abs(alternate))).max())
    return distance if np.isfinite(distance) else np.inf


Explanation = tuple[str, tuple[Step, ...]]
"""A cause in words, and the steps of the computation that it makes suspect."""
NOTHING: Explanation = "", ()
_LOST_PRECISION: Explanation = (
    "The values are close to the right ones: it looks like lost precision, such as a sum or a score kept in a smaller "
    "type, or a few terms of the sums missing or counted twice.",
    ("output_sum",),
)

# ---- causes ---------------------------------------------------------------------------------------------------


def _constant(samples: list[_Sample]) -> Explanation:
    values = np.concatenate([sample.got[sample.rows].ravel() for sample in samples])
    if len(values) > 1 and (values == values[0]).all():
        return (
            f"Every value of the sampled wrong rows is {values[0]:g}: the output was filled or never written, "
            "not computed."
        ), ("store",)
    return NOTHING


def _alternate(operator: Operator, shape: Shape, number: int, samples: list[_Sample]) -> Explanation:
    best, found = 1.0, NOTHING
    for alternate in operator.alternates():
        if alternate.tensor != number or alternate.rounding or alternate.unless(shape):
            continue
        worst = 0.0
        for sample in samples:
            values = _computed(alternate, shape, sample)
            columns = sample.columns
            got = sample.got[sample.rows][:, columns]
            worst = max(worst, _distance(got, values[:, columns], sample.near))
            if _energy(sample, values) > _energy(sample, sample.expected[sample.rows]) / 4:
                worst = np.inf  # where rounding errors count, it must be clearly nearer than the right values
            if worst > best:
                break
        if worst < best:  # of several equal ones the first stays, which is the likeliest
            best, found = worst, (alternate.sentence, alternate.steps)
    return found


def _energy(sample: _Sample, values: F32 | F64) -> float:
    """The sum of the squared differences between the sampled rows and `values`, in the columns that are wrong."""
    columns = sample.columns
    with np.errstate(all="ignore"):
        return float(np.square(sample.got[sample.rows][:, columns].astype(np.float64) - values[:, columns]).sum())


def _computed(alternate: Alternate, shape: Shape, sample: _Sample) -> F64:
    others = [sample.tensors_of(unit)[number] for unit, number in alternate.others(shape, sample.unit)]
    with np.errstate(all="ignore"):
        return alternate.compute(shape, (*sample.tensors, *others), sample.rows)


def _rounding(operator: Operator, shape: Shape, number: int, samples: list[_Sample]) -> Explanation:
    """Lost precision that explains most of the errors in the sampled rows."""
    best, found = EXPLAINED, NOTHING
    for alternate in operator.alternates():
        if alternate.tensor != number or not alternate.rounding or alternate.unless(shape):
            continue
        errors = [(s.got[s.rows] - s.expected[s.rows]).astype(np.float64).ravel() for s in samples]
        caused = [(_computed(alternate, shape, s) - s.expected[s.rows]).ravel() for s in samples]
        mine, theirs = np.concatenate(errors), np.concatenate(caused)
        if len(mine) < FEWEST_ERRORS:
            return NOTHING
        with np.errstate(all="ignore"):
            correlation = float(mine @ theirs / np.sqrt((mine @ mine) * (theirs @ theirs)))
        if correlation > best:
            best, found = correlation, (alternate.sentence, alternate.steps)
    return found


def _misplaced(operator: Operator, samples: list[_Sample]) -> Explanation:
    """Explain rows that hold right numbers in a wrong place, or times a factor."""
    holds = {s.unit: _holds(s) for s in samples}
    if None not in holds.values():
        if len(set(holds.values())) == 1:
            what = f"The wrong rows hold the output of {operator.unit} {holds[samples[0].unit]}"
        else:
            pairs = [f"{operator.unit} {unit} has that of {operator.unit} {other}" for unit, other in holds.items()]
            what = f"Wrong {operator.units_name} hold the output of other {operator.units_name} ({_and(pairs)})"
        return (
            f"{what}: look at how the {operator.unit}'s number enters the addresses, and at results that are "
            "copied before they are ready."
        ), ("batch",)
    several = all(min(s.expected.shape) > 1 for s in samples)  # the transpose of a single row is the same
    if several and all(_distance(s.got.reshape(-1), s.expected.T.reshape(-1), s.near) <= 1 for s in samples):
        return "The output is the right one transposed: it must be row-major, row after row.", ("store",)
    if shift := _row_moves(samples):
        return shift, ("load_q",) if "(number mod" in shift else ("row",)
    return _factor(samples), ("division",)


def _holds(sample: _Sample) -> int | None:
    """The unit whose right output is in the wrong rows of this one, if there is one."""
    for other, values in sorted(sample.others.items()):
        if _distance(sample.got[sample.rows], values[sample.rows], sample.near) <= 1:
            return other
    return None


def _row_moves(samples: list[_Sample]) -> str:
    moves = []
    for sample in samples:
        for row in sample.rows:
            with np.errstate(invalid="ignore", over="ignore"):
                off = np.abs(sample.expected - sample.got[row]).max(axis=1)
            nearest = int(np.nanargmin(off)) if not np.isnan(off).all() else int(row)
            if nearest == row or _distance(sample.got[row], sample.expected[nearest], sample.near) > 1:
                return ""
            moves.append((int(row), nearest))
    row, source = moves[0]
    for tile in TILES:
        if all(row >= tile and row % tile == source for row, source in moves):
            return (
                f"Each wrong row holds the right values of row (number mod {tile}): the code uses the row's number "
                "within its block where the number of the row itself is needed."
            )
    count = len(samples[0].expected)
    if len({(source - row) % count for row, source in moves}) == 1:
        by = (source - row + count // 2) % count - count // 2
        return (
            f"Each wrong row holds the right values of the row {abs(by)} {'below' if by > 0 else 'above'} it: "
            "look at how the row number is computed."
        )
    return (
        f"The wrong rows hold the right values of other rows (row {row} holds those of row {source}): look at how "
        "threads and tiles are mapped to rows."
    )


def _factor(samples: list[_Sample]) -> str:
    got = np.concatenate([s.got[s.rows].ravel() for s in samples]).astype(np.float64)
    right = np.concatenate([s.expected[s.rows].ravel() for s in samples]).astype(np.float64)
    near = samples[0].near
    if not np.isfinite(got).all() or not (right @ right) > 0:
        return ""
    factor = float(got @ right / (right @ right))
    if abs(factor - 1) < 2 * near.rtol or np.allclose(right, factor * right, rtol=near.rtol, atol=near.atol):
        return ""  # a factor of 1 explains nothing; lost precision looks like this too
    if abs(factor) > 1e-3 and np.allclose(got, factor * right, rtol=near.rtol, atol=near.atol * abs(factor)):
        return f"Every wrong row is the right one times {factor:.4g}."
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
