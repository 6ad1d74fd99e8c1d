"""Where a Python program's values come from: what counts as moved, and what the processor must have computed."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.grading import provenance
from grader.grading.provenance import other_values
from grader.operators.number_types import BF16, E4M3, E5M2, F16, F32_TYPE, NumberType
from grader.programs.submission import read_submission
from grader.programs.trace import Provenance, Trace, Unexplained
from grader.python.provenance import Follower
from grader.timing.evidence import too_many

Array = NDArray[Any]
ROWS, COLUMNS = 300, 70
Program = Callable[[Follower, Array], Array]
"""Moves the values of an input of ROWS x COLUMNS to the device and back, as `Follower` sees it; returns the output."""


def result(x: Array) -> Array:
    """What kernels compute here."""
    return (np.sin(x.astype(np.float32)) * 3 + 2).astype(x.dtype)


def events(program: Program, folder: Path, dtype: Any = np.float32) -> list[dict[str, dict[str, Any]]]:
    """What is reported of two runs: on some values, and on others in their places."""
    x = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype(dtype)
    type_ = F16 if x.itemsize == 2 else F32_TYPE
    masks = np.random.default_rng(2).integers(1, 128, 512)
    found: list[dict[str, Any]] = []
    for number, values in enumerate((x, other_values(x, type_, masks))):
        source, target = folder / f"input{number}", folder / f"output{number}"
        source.write_bytes(np.array([ROWS, COLUMNS], np.int32).tobytes() + values.tobytes())
        follower = Follower(source, target, itertools.count(1).__next__)
        target.write_bytes(program(follower, values.copy()).tobytes())
        found.append(follower.report())
    return found


def unexplained(found: list[dict[str, dict[str, Any]]]) -> dict[str, int]:
    """The values of each kind that did not move and that changed with the input."""
    one, two = found
    names = ("uploads", "arguments", "written")
    changed = [name for name in names if all(one[name][of] != two[name][of] for of in ("values", "places"))]
    return {name: one[name]["count"] for name in changed}


def from_device(follower: Follower, values: Array) -> Array:
    follower.downloaded(values)
    return values


# ---- what honest programs do ------------------------------------------------------------------------------------


def whole(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    return from_device(f, result(x))


def row_by_row(f: Follower, x: Array) -> Array:
    rows = []
    for number, row in enumerate(x):
        f.uploaded(row, "fp32")
        f.launched(("kernel", 1, 1, 1, number, COLUMNS))
        rows.append(from_device(f, result(row)))
    return np.concatenate(rows)


def transposed(f: Follower, x: Array) -> Array:
    f.uploaded(np.ascontiguousarray(x.T), "fp32")
    return from_device(f, result(x).T.copy()).T.copy()


def padded(f: Follower, x: Array) -> Array:
    f.uploaded(np.pad(x, ((0, 4), (0, 58)), constant_values=-np.inf), "fp32")
    return from_device(f, np.pad(result(x), ((0, 4), (0, 58))))[:ROWS, :COLUMNS].copy()


def in_half_precision(f: Follower, x: Array) -> Array:
    f.uploaded(x.astype(np.float16).view(np.uint16), "fp16")
    return from_device(f, result(x).astype(np.float16)).astype(np.float32)


def to_half_precision(f: Follower, x: Array) -> Array:
    f.uploaded(x.astype(np.float32), "fp32")
    return from_device(f, result(x.astype(np.float32))).astype(np.float16)


def as_bfloat16(f: Follower, x: Array) -> Array:
    f.uploaded((x.view(np.uint32) >> 16).astype(np.uint16), "bf16")
    return from_device(f, result(x))


def interleaved(f: Follower, x: Array) -> Array:
    f.uploaded(np.stack([x[: ROWS // 2], x[ROWS // 2 :]], -1), "fp32")
    return from_device(f, result(x))


def with_a_mask_and_a_table(f: Follower, x: Array) -> Array:
    mask = np.tril(np.ones((200, 200), np.uint8))
    f.uploaded(mask, "uint8")
    f.uploaded(np.cos(np.arange(5000)).astype(np.float32), "fp32")
    f.uploaded(x, "fp32")
    return from_device(f, result(x))


def through_the_host_twice(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    half_way = from_device(f, x * 7)
    f.uploaded(half_way[::-1].copy(), "fp32")
    return from_device(f, result(x))


def shuffled_rows(f: Follower, x: Array) -> Array:
    order = np.random.default_rng(5).permutation(ROWS)
    f.uploaded(order, "int64")
    f.uploaded(x[order], "fp32")
    return from_device(f, result(x))


HONEST = [
    whole, row_by_row, transposed, padded, in_half_precision, as_bfloat16, interleaved, with_a_mask_and_a_table,
    through_the_host_twice, shuffled_rows,
]  # fmt: skip


@pytest.mark.parametrize("program", HONEST, ids=lambda program: program.__name__)
def test_moving_values_is_not_computing(program: Program, tmp_path: Path) -> None:
    assert {name: count for name, count in unexplained(events(program, tmp_path)).items() if count > 32} == {}


@pytest.mark.parametrize("program", [whole, transposed, interleaved, shuffled_rows, to_half_precision])
def test_moving_values_of_16_bits_is_not_computing(program: Program, tmp_path: Path) -> None:
    """Many of them are equal, so they cannot be told apart."""
    found = unexplained(events(program, tmp_path, np.float16))
    assert {name: count for name, count in found.items() if count > 32} == {}


def test_usual_programs_need_no_second_run(tmp_path: Path) -> None:
    for program in (whole, transposed, padded, in_half_precision, as_bfloat16):
        one, _ = events(program, tmp_path)
        assert all(one[kind]["count"] <= 32 for kind in ("uploads", "arguments", "written")), program.__name__


# ---- what the processor computes --------------------------------------------------------------------------------


def written(f: Follower, x: Array) -> Array:
    return result(x)


def before_a_copy(f: Follower, x: Array) -> Array:
    f.uploaded(result(x), "fp32")
    return from_device(f, result(x))


def a_tenth_of_the_rows(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    y = from_device(f, result(x)).copy()
    y[-ROWS // 10 :] = np.nextafter(y[-ROWS // 10 :], np.float32(9))
    return y


def scaled(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    return from_device(f, result(x)) * np.float32(1 / 3)


def halved(f: Follower, x: Array) -> Array:
    f.uploaded(x / 2, "fp32")
    return from_device(f, result(x))


def sorted_rows(f: Follower, x: Array) -> Array:
    f.uploaded(np.sort(x), "fp32")
    return from_device(f, result(x))


def laundered(f: Follower, x: Array) -> Array:
    """The input comes back from the device before the processor computes with it."""
    f.uploaded(x, "fp32")
    back = from_device(f, x + 1) - 1
    return before_a_copy(f, back)


def by_arguments(f: Follower, x: Array) -> Array:
    for number, value in enumerate(result(x).ravel()):
        f.launched(("store", 1, 1, 1, number, float(value)))
    return from_device(f, result(x))


def chosen_from_a_table(f: Follower, x: Array) -> Array:
    """The device has a table of all results, from which the processor chooses."""
    table = from_device(f, np.sort(result(x).ravel()))
    return table[np.searchsorted(table, result(x))]


def hidden_between_zeros(f: Follower, x: Array) -> Array:
    f.uploaded(np.stack([result(x), np.zeros_like(x)], -1), "fp32")
    return from_device(f, result(x))


DISHONEST = [
    written, before_a_copy, a_tenth_of_the_rows, scaled, halved, sorted_rows, laundered, by_arguments,
    chosen_from_a_table, hidden_between_zeros,
]  # fmt: skip


@pytest.mark.parametrize("program", DISHONEST, ids=lambda program: program.__name__)
def test_what_the_processor_computes_is_counted_and_changes_with_the_input(program: Program, tmp_path: Path) -> None:
    assert max(unexplained(events(program, tmp_path)).values()) >= ROWS * COLUMNS / 10


def test_the_line_of_most_unexplained_values_is_reported(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(bytes(8))
    lines: Iterator[int] = iter([3, 5, 7])
    follower = Follower(tmp_path / "input", tmp_path / "output", lambda: next(lines))
    for size in (40, 90, 60):
        follower.uploaded(np.random.default_rng(size).normal(size=size), "fp64")
    uploads: Any = follower.report()["uploads"]
    assert (uploads["count"], uploads["line"]) == (190, 5)


@pytest.mark.parametrize("type_", [F32_TYPE, F16, BF16, E4M3, E5M2], ids=lambda type_: type_.name)
def test_other_values_differ_where_values_differ_and_stay_finite(type_: NumberType) -> None:
    size = 8 * type_.bytes
    every = np.arange(1 << min(size, 16), dtype=f"u{type_.bytes}") << max(0, size - 16)
    stored = every.view(type_.storage)
    other = other_values(stored, type_, np.random.default_rng(3).integers(1, 128, 512))
    assert len(np.unique(other.view(every.dtype))) == len(every)
    before, after = type_.decode(stored), type_.decode(other)
    assert (np.isfinite(before) == np.isfinite(after)).all() and (np.isnan(before) == np.isnan(after)).all()
    assert (before != after)[np.isfinite(before)].mean() >= 0.5
    powers = type_.encode(np.array([0.0, 1.0, -2.0, 0.5], np.float32))
    assert (other_values(powers, type_, np.arange(1, 513)) == powers).all()


# ---- what the grader makes of it --------------------------------------------------------------------------------

NOTHING = Unexplained(0, 0, 0, "", "")
ASSIGNMENT = load_assignment("softmax")
CASES = load_suite(ASSIGNMENT.testcases_file).cases
CASE, OF_TWO_ROWS = CASES["s08"], CASES["s07"]


def wrote(count: int, values: str, *, places: str = "elsewhere", unfollowed: int = 0) -> Provenance:
    return Provenance(NOTHING, NOTHING, Unexplained(count, 2, unfollowed, values, f"{places} {values}"))


@pytest.mark.parametrize(
    ("first", "other", "same", "says"),
    [
        (wrote(64, "a"), None, None, None),  # so few may be a scale and sizes
        (wrote(90_000, "a"), wrote(90_000, "a"), None, None),  # a table
        (wrote(90_000, "a"), wrote(90_000, "b"), wrote(90_000, "a"), "softmax.py:2 writes 90,000 values to the output"),
        (wrote(90_000, "a"), wrote(90_000, "b"), wrote(90_000, "c"), "not do the same in every run"),
        (wrote(90_000, "a"), None, None, "on other values it did not end normally"),
        (wrote(90_000, "a", unfollowed=9), wrote(90_000, "b"), wrote(90_000, "a"), "could not be determined"),
    ],
)
def test_values_count_as_computed_if_they_change_with_the_input_and_with_nothing_else(
    first: Provenance,
    other: Provenance | None,
    same: Provenance | None,
    says: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = tmp_path / "given"
    given.write_bytes(np.random.default_rng(4).normal(size=CASE.input_bytes // 4).astype(np.float32).tobytes())

    @contextlib.contextmanager
    def run(engine: object, program: Path, path: Path, **limits: object) -> Iterator[SimpleNamespace]:
        again = path.read_bytes() == given.read_bytes()
        assert path.stat().st_size == CASE.input_bytes and path.read_bytes()[:8] == given.read_bytes()[:8]
        found = same if again else other
        yield SimpleNamespace(trace=Trace(provenances=(found,) if found else ()))

    monkeypatch.setattr(provenance, "run_program", run)
    (tmp_path / "softmax.py").write_text("import triton\ny.tofile(name)\n")
    submission = read_submission(tmp_path / "softmax.py", ASSIGNMENT)
    engine: Any = None
    found = provenance.host_work(
        Trace(provenances=(first,)), engine, tmp_path, CASE, given, submission, wall_s=1, limits=ASSIGNMENT.limits
    )
    assert (found is None) if says is None else (found is not None and says in found.sentence)
    assert found is None or found.proved == ("writes" in found.sentence and not first.written.unfollowed)


def test_with_few_rows_a_few_numbers_are_too_many() -> None:
    """The maximum and the sum of each row are most of the work."""
    numbers = Provenance(NOTHING, Unexplained(8, 3, 0, "a", "a"), NOTHING)
    assert too_many(numbers, OF_TWO_ROWS) and not too_many(numbers, CASE)
