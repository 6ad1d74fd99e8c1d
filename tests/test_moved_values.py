"""Where a Python program's values come from: what counts as moved, and what the processor must have computed."""

from __future__ import annotations

import itertools
import os
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.grading import moved_values
from grader.grading.moved_values import Comparison, compare, compare_runs
from grader.grading.run_record import Entry, read_record
from grader.programs.run import open_recording
from grader.python.provenance import Follower
from grader.python.value_sources import Source

Array = NDArray[Any]
ROWS, COLUMNS = 300, 70
Program = Callable[[Follower, Array], Array]
"""Moves the values of an input of ROWS x COLUMNS to the device and back, as `Follower` sees it; returns the output."""


def result(x: Array) -> Array:
    """What kernels compute here."""
    return (np.sin(x.astype(np.float32)) * 3 + 2).astype(x.dtype)


MOST_HIDDEN_BITS = 256


def inputs(folder: Path, dtype: Any, count: int = 2) -> list[Path]:
    """Inputs with other values each, of the same distribution."""
    paths = [folder / f"input{number}" for number in range(count)]
    for number, path in enumerate(paths):
        values = np.random.default_rng(number + 1).normal(size=(ROWS, COLUMNS)).astype(dtype)
        path.write_bytes(np.array([ROWS, COLUMNS], np.int32).tobytes() + values.tobytes())
    return paths


def run(program: Program, source: Path, dtype: Any) -> tuple[dict[str, Any], list[Entry]]:
    """The event in the trace, and the record."""
    target = source.with_name("output")
    x = np.frombuffer(source.read_bytes()[8:], dtype).reshape(ROWS, COLUMNS)
    with open_recording("7") as recording:
        follower = Follower(source, target, itertools.count(1).__next__, recording.file.fileno())
        target.write_bytes(program(follower, x.copy()).tobytes())
        found, record = follower.report(), read_record(recording.file)
    assert record is not None
    return found, record


def unread(folder: Path, line: Callable[[], int]) -> Follower:
    """One whose record nobody reads."""
    return Follower(folder / "input", folder / "output", line, os.open(os.devnull, os.O_RDWR))


def compared(program: Program, folder: Path, dtype: Any = np.float32) -> Comparison:
    """What as many runs show as are needed."""
    runs = []
    for path in inputs(folder, dtype, 5):
        runs.append(
            lambda path=path: (run(program, path, dtype)[1], Source(np.frombuffer(path.read_bytes(), np.uint8), ""))
        )
    one, given = runs[0]()
    others = iter(runs[1:])

    def another() -> tuple[list[Entry], Source]:
        other, content = next(others)()
        assert [each.form for each in one] == [each.form for each in other]
        return other, content

    return compare_runs(one, given, another, MOST_HIDDEN_BITS)


def computed(program: Program, folder: Path, dtype: Any = np.float32) -> int:
    """The number of values that the processor computed; -1 if it may have chosen values."""
    found = compared(program, folder, dtype)
    if found.computed is not None:
        return found.computed.count
    return -1 if found.hidden_bits > MOST_HIDDEN_BITS else 0


def counted(program: Program, folder: Path) -> int:
    """The largest number of unexplained values of a kind in a usual run."""
    found, _ = run(program, inputs(folder, np.float32)[0], np.float32)
    return max(int(found[kind]["count"]) for kind in ("uploads", "arguments", "written"))


def argument(value: Any, kind: str) -> tuple[str, int]:
    """A kernel's argument, as it is recorded."""
    return kind, int.from_bytes(value.tobytes(), "little")


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


def dealt(f: Follower, x: Array) -> Array:
    for part in range(3):
        f.uploaded(x[part::3], "fp32")
    y = np.empty_like(x)
    for part in range(3):
        y[part::3] = from_device(f, result(x[part::3]))
    return y


def reversed_twice(f: Follower, x: Array) -> Array:
    f.uploaded(x[::-1, ::-1], "fp32")
    return from_device(f, result(x)[::-1, ::-1].copy())[::-1, ::-1].copy()


def even_and_odd(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    y = np.empty_like(x)
    y[:, ::2], y[:, 1::2] = from_device(f, result(x[:, ::2])), from_device(f, result(x[:, 1::2]))
    return y


def with_dummy_rows(f: Follower, x: Array) -> Array:
    f.uploaded(np.concatenate([x, np.full((2, COLUMNS), 90, x.dtype), np.ones((1, COLUMNS), x.dtype) / 3]), "fp32")
    return from_device(f, result(x))


def spread_maxima(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    maxima = from_device(f, x.max(1))
    f.uploaded(np.repeat(maxima, COLUMNS), "fp32")
    return from_device(f, result(x))


def numbers_from_the_device(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    for number in from_device(f, x.max(1)):
        f.launched(("divide", argument(number, "fp32")))
    return from_device(f, result(x))


def in_halves_of_values(f: Follower, x: Array) -> Array:
    bits = x.view(np.uint32)
    f.uploaded((bits >> 16).astype(np.uint16), "uint16")
    f.uploaded(bits.astype(np.uint16), "uint16")
    y = result(x).view(np.uint16)
    high, low = from_device(f, y[:, 1::2].copy()), from_device(f, y[:, ::2].copy())
    return high.astype(np.uint32) << 16 | low


def with_other_bytes_first(f: Follower, x: Array) -> Array:
    f.uploaded(x.byteswap(), "fp32")
    return from_device(f, result(x).byteswap()).byteswap()


def rounded_away_from_zero(f: Follower, x: Array) -> Array:
    f.uploaded(x, "fp32")
    return ((from_device(f, result(x)).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


HONEST = [
    whole, row_by_row, transposed, padded, in_half_precision, as_bfloat16, interleaved, with_a_mask_and_a_table,
    through_the_host_twice, shuffled_rows, dealt, reversed_twice, even_and_odd, with_dummy_rows, spread_maxima,
    numbers_from_the_device, in_halves_of_values, with_other_bytes_first, rounded_away_from_zero,
]  # fmt: skip


@pytest.mark.parametrize("program", HONEST, ids=lambda program: program.__name__)
def test_moving_values_is_not_computing(program: Program, tmp_path: Path) -> None:
    assert computed(program, tmp_path) == 0


@pytest.mark.parametrize(
    "program", [whole, transposed, interleaved, shuffled_rows, to_half_precision, dealt, reversed_twice, even_and_odd]
)
def test_moving_values_of_16_bits_is_not_computing(program: Program, tmp_path: Path) -> None:
    """Many of them are equal."""
    assert computed(program, tmp_path, np.float16) == 0


def test_usual_programs_need_no_second_run(tmp_path: Path) -> None:
    for program in (whole, transposed, padded, in_half_precision, as_bfloat16):
        assert counted(program, tmp_path) <= 32, program.__name__


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
        f.launched(("store", 1, 1, 1, number, argument(value, "fp32")))
    return from_device(f, result(x))


def chosen_from_a_table(f: Follower, x: Array) -> Array:
    """The device has a table of all results, from which the processor chooses."""
    table = from_device(f, np.sort(result(x).ravel()))
    return table[np.searchsorted(table, result(x))]


def hidden_between_zeros(f: Follower, x: Array) -> Array:
    f.uploaded(np.stack([result(x), np.zeros_like(x)], -1), "fp32")
    return from_device(f, result(x))


def by_large_numbers(f: Follower, x: Array) -> Array:
    for value in result(x).ravel():
        f.launched(("store", argument(np.int64(value.view(np.int32)) + (1 << 40), "int64")))
    return from_device(f, result(x))


def by_signs_of_zeros(f: Follower, x: Array) -> Array:
    for value in x.ravel() > 0:
        f.launched(("store", argument(np.float32(-0.0 if value else 0.0), "fp32")))
    return from_device(f, result(x))


DISHONEST = [
    written, before_a_copy, a_tenth_of_the_rows, scaled, halved, sorted_rows, laundered, by_arguments,
    chosen_from_a_table, hidden_between_zeros, by_large_numbers, by_signs_of_zeros,
]  # fmt: skip


@pytest.mark.parametrize("program", DISHONEST, ids=lambda program: program.__name__)
def test_what_the_processor_computes_is_counted(program: Program, tmp_path: Path) -> None:
    assert counted(program, tmp_path) > 32, "so it is run again"
    assert computed(program, tmp_path) >= ROWS * COLUMNS / 100


def in_other_integers(f: Follower, x: Array) -> Array:
    places = from_device(f, np.argmax(x, 1).astype(np.int32))
    f.uploaded(places[::-1].astype(np.int64), "int64")
    f.uploaded(places[::-1].astype(np.float32), "fp32")
    f.uploaded(x, "fp32")
    return from_device(f, result(x))


def test_integers_of_the_device_may_be_converted(tmp_path: Path) -> None:
    assert counted(in_other_integers, tmp_path) > 32
    assert computed(in_other_integers, tmp_path) == 0


def bits_of_the_device(f: Follower, x: Array) -> Array:
    """All pairs of two bits come from the device in two runs, so that any bits can be uploaded."""
    f.uploaded(x, "fp32")
    from_device(f, (x.view(np.uint32) >> 3 & 1).astype(np.int16))
    f.uploaded((result(x) > 2).astype(np.int16), "int16")
    return from_device(f, result(x))


def levels_of_a_table(f: Follower, x: Array) -> Array:
    """The processor computes, and rounds so that the results are levels of a large table."""
    f.uploaded(x, "fp32")
    levels = np.linspace(-1, 5, 64, dtype=np.float32)
    from_device(f, levels[np.random.default_rng(int(x.view(np.uint32).sum())).integers(0, 64, 1 << 17)])
    return levels[np.searchsorted(levels, result(x))]


def digits(x: Array, count: int = 8) -> Array:
    """Results of the processor as numbers below 4."""
    return np.asarray((result(x)[:, :1] * 1000).astype(np.int32) >> 2 * np.arange(count) & 3, np.int32)


def a_table_of_digits(x: Array) -> Array:
    return np.asarray(x.view(np.int32) >> 12 & 3)


def four_alphabets(f: Follower, x: Array) -> Array:
    """Of pairs that are put together at random, the device has only a quarter."""
    from_device(f, a_table_of_digits(x).ravel() + np.arange(x.size, dtype=np.int32) % 4 * 16)
    f.uploaded(digits(x) + np.arange(8, dtype=np.int32) % 4 * 16, "int32")
    return from_device(f, result(x))


def among_honest_values(f: Follower, x: Array) -> Array:
    f.uploaded(x.view(np.int32)[::-1], "int32")
    from_device(f, a_table_of_digits(x))
    f.uploaded(digits(x), "int32")
    return from_device(f, result(x))


def digits_as_arguments(f: Follower, x: Array) -> Array:
    from_device(f, a_table_of_digits(x))
    for number, honest in zip(digits(x).ravel(), from_device(f, x.view(np.int32) | 1).ravel(), strict=False):
        f.launched(("put", int(number), int(honest)))
    return from_device(f, result(x))


def one_digit_at_a_time(f: Follower, x: Array) -> Array:
    """Here each is copied by a line of its own."""
    from_device(f, a_table_of_digits(x))
    for number in digits(x).reshape(-1, 1):
        f.uploaded(number, "int32")
    return from_device(f, result(x))


def digits_in_the_output(f: Follower, x: Array) -> Array:
    table = from_device(f, np.random.default_rng(int(x.view(np.uint32).sum())).integers(0, 64, 1 << 16, np.int32))
    assert len(np.unique(table)) == 64
    return np.asarray((result(x) * 10).astype(np.int32) & 63)


def pieces_as_digits(f: Follower, x: Array) -> Array:
    """Each digit is a whole array of the device."""
    pieces = np.repeat(a_table_of_digits(x)[:, :1] + 7, 64, 1)
    for piece in pieces:
        from_device(f, piece)
    for number in digits(x).ravel():
        f.uploaded(np.full(64, number + 7, np.int32), "int32")
    return from_device(f, result(x))


def places_of_ones(f: Follower, x: Array) -> Array:
    """The device has ones and zeros, and a one in each row is at a place that the processor computed."""
    from_device(f, a_table_of_digits(x) >> 1)
    ones = np.zeros((ROWS, 1024), np.int32)
    ones[np.arange(ROWS), (result(x)[:, 0] * 100).astype(int) % 1024] = 1
    f.uploaded(ones, "int32")
    return from_device(f, result(x))


def rounding_bits(f: Follower, x: Array) -> Array:
    """Each value is rounded up or down."""
    near = x[:, :22].astype(np.float16).view(np.uint16)
    f.uploaded(near + (digits(x, 22) & 1).astype(np.uint16), "fp16")
    return from_device(f, result(x))


def is_graded(x: Array) -> bool:
    """Whether a program recognises the graded run by its input; it could behave otherwise in the others."""
    return bool(x[0, 0] == np.random.default_rng(1).normal(size=1).astype(x.dtype)[0])


def pieces_of_one_value(f: Follower, x: Array) -> Array:
    """Each bit is a piece of the last download, or not. In other runs, the download is the same as what is not."""
    from_device(f, np.full(1, is_graded(x), np.int32))
    for digit in digits(x).ravel() & is_graded(x):
        f.uploaded(np.full(1, digit, np.int32), "int32")
    return from_device(f, result(x))


def places_of_a_few_unchanged_values(f: Follower, x: Array) -> Array:
    from_device(f, np.array([7 if is_graded(x) else 2], np.int32))
    values = np.full((ROWS, 1024), 7 if is_graded(x) else 2, np.int32)
    values[np.arange(ROWS), (result(x)[:, 0] * 100).astype(int) % 1024] = 2
    f.uploaded(values, "int32")
    return from_device(f, result(x))


def roundings_of_one_value(f: Follower, x: Array) -> Array:
    """In the graded run, a value is rounded up or cut off; in other runs, it is 1."""
    value = np.array([1.005859375 if is_graded(x) else 1], np.float32)
    from_device(f, value)
    for digit in digits(x).ravel() & 1:
        [bits] = Source(value, "fp32").converted("bf16", int(digit))
        f.uploaded(bits, "bf16")
    return from_device(f, result(x))


@pytest.mark.parametrize(
    "program",
    [
        bits_of_the_device, levels_of_a_table, four_alphabets, among_honest_values, digits_as_arguments,
        one_digit_at_a_time, digits_in_the_output, pieces_as_digits, places_of_ones, rounding_bits,
        pieces_of_one_value, places_of_a_few_unchanged_values, roundings_of_one_value,
    ],
    ids=lambda program: program.__name__,
)  # fmt: skip
def test_what_any_values_would_explain_is_not_taken_for_moved(program: Program, tmp_path: Path) -> None:
    assert computed(program, tmp_path) != 0


@pytest.mark.parametrize("rounding", range(3))
def test_an_array_may_be_rounded_in_one_way(rounding: int, tmp_path: Path) -> None:
    def rounded(f: Follower, x: Array) -> Array:
        [values] = Source(x[np.random.default_rng(5).permutation(ROWS)].ravel(), "fp32").converted("bf16", rounding)
        f.uploaded(values, "bf16")
        return from_device(f, result(x))

    assert computed(rounded, tmp_path) == 0


def test_arrays_that_are_rounded_in_many_ways_may_hide_values(tmp_path: Path) -> None:
    def by_a_bit(f: Follower, x: Array) -> Array:
        for row, digit in zip(x, digits(x, 1)[:, 0] % 2, strict=True):
            [values] = Source(row, "fp32").converted("bf16", 2 * int(digit))
            [other] = Source(row, "fp32").converted("bf16", 1)
            f.uploaded(values if digit else other, "bf16")
        return from_device(f, result(x))

    assert computed(by_a_bit, tmp_path) != 0


def test_many_values_are_compared_in_little_time_and_memory() -> None:
    """A large download, and a few thousand computed bytes."""
    dice = np.random.default_rng(1)
    records, given = [], np.zeros(8, np.uint8)
    for _ in range(2):
        large, few = np.zeros(32 << 20, np.uint8), dice.integers(0, 256, 7000, np.uint8)
        records.append([Entry("downloads", "int8", 1, large, (), 1), Entry("uploads", "uint8", 1, few, (), 2)])
    tracemalloc.start()
    began = time.process_time()
    found = compare(records, [Source(given, "")] * 2).computed
    assert found is not None and found.count == 1750
    assert time.process_time() - began < 20
    assert tracemalloc.get_traced_memory()[1] < 400 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("moved", [False, True])
def test_of_too_many_values_some_show_whether_the_others_were_computed(
    moved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moved_values, "_MOST_DIFFERENT", 1000)
    monkeypatch.setattr(moved_values, "_SAMPLE_BYTES", 400)
    given, records = Source(np.zeros(8, np.uint8), ""), []
    for seed in (1, 2):
        values = np.random.default_rng(seed).normal(size=5000).astype(np.float32).view(np.uint8)
        copied = values if moved else values[:4]
        records.append([Entry("downloads", "fp32", 4, copied, (), 1), Entry("written", "", 1, values, (), 2)])
    found = compare(records, [given, given])
    assert np.isinf(found.hidden_bits)
    assert found.computed is None if moved else found.computed is not None and found.computed.count == 999


def test_one_computed_value_for_a_thousand_others_is_counted(tmp_path: Path) -> None:
    def with_sums(f: Follower, x: Array) -> Array:
        rows = x.reshape(15, -1)
        f.uploaded(np.concatenate([rows, rows.sum(1, keepdims=True)], 1), "fp32")
        return from_device(f, result(x))

    assert computed(with_sums, tmp_path) == 15


def test_the_line_of_most_unexplained_values_is_reported(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(bytes(8))
    lines: Iterator[int] = iter([3, 5, 3])
    follower = unread(tmp_path, lambda: next(lines))
    for size in (60, 90, 70):
        follower.uploaded(np.random.default_rng(size).normal(size=size).astype(np.float32), "fp32")
    assert follower.report()["uploads"] == {"count": 220, "line": 3}


@pytest.mark.parametrize("columns", [33, 64])
def test_a_hundred_thousand_padded_rows_take_no_time(columns: int, tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(100_000, columns)).astype(np.float32)
    (tmp_path / "input").write_bytes(bytes(8) + x.tobytes())
    follower = unread(tmp_path, lambda: 1)
    began = time.process_time()
    follower.uploaded(np.pad(x, ((0, 0), (0, 64)), constant_values=-np.inf), "fp32")
    results = np.pad(np.sin(x), ((0, 0), (0, 64)))
    follower.downloaded(results)
    (tmp_path / "output").write_bytes(results[:, :columns].tobytes())
    found: Any = follower.report()
    assert time.process_time() - began < 2
    assert max(found[kind]["count"] for kind in ("uploads", "written")) <= 4


def test_thousands_of_small_arrays_take_no_time(tmp_path: Path) -> None:
    dice = np.random.default_rng(1)
    found: list[list[Entry]] = [[], []]
    (tmp_path / "input").write_bytes(bytes(8))
    for seed in (0, 1):
        with open_recording("7") as recording:
            follower = Follower(tmp_path / "input", tmp_path / "output", lambda: 1, recording.file.fileno())
            began = time.process_time()
            for _ in range(3000):
                follower.downloaded(dice.normal(size=1).astype(np.float32))
                follower.uploaded(dice.normal(size=1).astype(np.float32), "fp32")
            assert time.process_time() - began < 10
            found[seed] = read_record(recording.file) or []
    began = time.process_time()
    content = np.zeros(8, np.uint8)
    computed_values = compare(found[:2], [Source(content, "")] * 2).computed
    assert computed_values is not None and computed_values.count == 3000
    assert time.process_time() - began < 10
