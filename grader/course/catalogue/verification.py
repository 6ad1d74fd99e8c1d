"""Verifies a testcase's files against their SHA-256, the seed and the oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.base.paths import shown
from grader.course.catalogue.testcase_files import Progress, TestcaseFiles, changed_files, state
from grader.course.seeds import Seed, draw_tensors
from grader.course.testcase import Case
from grader.operators import Location, Operator, Shape
from grader.operators.base import Rows, Tensors
from grader.operators.tolerance import errors_of

_SAMPLED_UNITS = 8
_SAMPLED_ROWS = 16


@dataclass(frozen=True)
class Verification:
    """The problems found in a case's files."""

    case: Case
    problems: tuple[str, ...]
    values_recomputed: int

    @property
    def ok(self) -> bool:
        return not self.problems


def verify(
    case: Case,
    files: TestcaseFiles,
    seed: Seed | None = None,
    full: bool = False,
    progress: Progress = lambda done, total: None,
) -> Verification:
    """Verify a testcase's files: sidecar, sizes, header and SHA-256; the input against `seed` if it is given; and the
    expected output against the oracle, in sampled rows or (`full`) in all rows.
    """
    kind = state(case, files, seed)
    if kind != "ready":
        reason = {"missing": "is missing", "unfinished": f"has no {case.name}.json, which says how it was made"}
        text = reason.get(kind, f"was made from something else ({kind})")
        return Verification(case, (f"{shown(files.input(case))} {text}; generate {case.name} again.",), 0)
    size = case.input_bytes + case.expected_bytes
    total = 2 * size if full else size  # with `full`, every byte counts twice: once read, once recomputed
    problems = changed_files(case, files, lambda read: progress(read, total))
    recomputed, wrong = _recompute(
        case, files, seed, full, lambda done, units: progress(size + size * done // units, total)
    )
    return Verification(case, (*problems, *wrong), recomputed)


def _recompute(
    case: Case, files: TestcaseFiles, seed: Seed | None, full: bool, progress: Progress
) -> tuple[int, list[str]]:
    """Recompute expected values, in units and rows that are spread evenly. Return (number of values, problems)."""
    operator, shape = case.operator, case.shape
    units, layouts = operator.units(shape), operator.expected_layouts(shape)
    recomputed = 0
    with files.input(case).open("rb") as source, files.expected(case).open("rb") as target:
        for number, unit in enumerate(range(units) if full else _spread(units, _SAMPLED_UNITS).tolist()):
            if full:
                progress(number + 1, units)
            tensors = operator.read_unit(source, shape, unit)
            if seed is not None and not _is_drawn(case, seed, unit, tensors):
                label = operator.unit_label(shape, unit)
                return recomputed, [f"{shown(files.input(case))}: {label} does not follow from the seed."]
            count = operator.outputs(shape)[0].rows
            rows = slice(None) if full or not operator.independent_rows else _spread(count, _SAMPLED_ROWS)
            for layout, result in zip(layouts, operator.oracle(shape, tensors, rows), strict=True):
                recomputed += result.size
                whole = layout.read(target.fileno(), unit)
                assert whole is not None, "state() has checked the size of the file"
                kept = whole[rows]
                # Another BLAS may sum in another order, so we allow a little more than the spacing of float32.
                if not np.allclose(kept, result, rtol=2**-22, atol=1e-9):
                    errors = errors_of(kept, result.astype(kept.dtype))
                    place = _worst(operator, shape, layout.tensor.name, unit, rows, errors)
                    return recomputed, [
                        f"{shown(files.expected(case))}: {place} differs from the oracle by {errors.max():.3g}; "
                        f"generate {case.name} again."
                    ]
    return recomputed, []


def _spread(count: int, most: int) -> NDArray[np.intp]:
    """At most `most` numbers below `count`, evenly spread, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, most).astype(np.intp))


def _is_drawn(case: Case, seed: Seed, unit: int, tensors: Tensors) -> bool:
    """Whether the input `tensors` of a unit follow from `seed`."""
    drawn = draw_tensors(case.operator, case.shape, case.distribution, seed, case.identity, unit)
    return all(np.array_equal(mine, theirs) for mine, theirs in zip(tensors, drawn, strict=True))


def _worst(
    operator: Operator, shape: Shape, tensor: str, unit: int, rows: Rows, errors: NDArray[np.float64]
) -> Location:
    """The location of the largest of `errors`, which belong to the rows `rows` of an output tensor."""
    row, column = np.unravel_index(int(errors.argmax()), errors.shape)
    real_row = int(row) if isinstance(rows, slice) else int(rows[row])
    return operator.location(shape, tensor, unit, real_row, int(column))
