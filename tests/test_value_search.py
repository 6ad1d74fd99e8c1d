"""The search for moved values: what it finds, and how much work that is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.operators.number_types import E4M3, E5M2, NumberType
from grader.python.value_search import MOST_WORK, Search
from grader.python.value_sources import Source

Array = NDArray[Any]
ROWS, COLUMNS = 256, 1024
VALUES = np.random.default_rng(1).normal(size=(ROWS, COLUMNS)).astype(np.float32)
BITS = VALUES.view(np.uint32)
INPUT = Source(np.frombuffer(np.array([ROWS, COLUMNS], np.int32).tobytes() + VALUES.tobytes(), np.uint8), "")
PADDED = np.pad(VALUES, ((0, 0), (0, 16)))
LITTLE = MOST_WORK // 10


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (VALUES, "fp32"),
        (VALUES.astype(np.float16), "fp16"),
        (VALUES.astype(np.float64), "fp64"),
        ((BITS + 0x7FFF + (BITS >> 16 & 1) >> 16).astype(np.uint16), "bf16"),
        ((BITS >> 16).astype(np.uint16), "bf16"),
        ((BITS + 0x8000 >> 16).astype(np.uint16), "bf16"),
        (VALUES.T, "fp32"),
        (VALUES.T.astype(np.float16), "fp16"),
        (VALUES[::-1], "fp32"),
        (VALUES[::-1].astype(np.float16), "fp16"),
        (PADDED, "fp32"),
        (PADDED.astype(np.float16), "fp16"),
        (VALUES.reshape(32, 8, 64, 16).transpose(0, 2, 1, 3), "fp32"),
        (VALUES[::3], "fp32"),
    ],
)
def test_an_honest_copy_is_found_with_little_work(values: Array, type_: str) -> None:
    search = Search()
    assert search.in_upload(np.ascontiguousarray(values), type_, [INPUT]) <= 2
    assert MOST_WORK - search.left < LITTLE


@pytest.mark.parametrize(
    ("download", "type_", "written"),
    [
        (VALUES, "fp32", VALUES),
        (VALUES.astype(np.float64) * 1.1, "fp64", (VALUES.astype(np.float64) * 1.1).astype(np.float32)),
        (VALUES, "fp32", VALUES.astype(np.float16)),
        (VALUES, "fp32", VALUES.T),
        (VALUES, "fp32", VALUES[::-1]),
        (PADDED, "fp32", VALUES),
    ],
)
def test_an_honest_output_is_found_with_little_work(download: Array, type_: str, written: Array) -> None:
    search = Search()
    assert search.in_output(np.frombuffer(written.tobytes(), np.uint8), [Source(download, type_)]) <= 2
    assert MOST_WORK - search.left < LITTLE


@pytest.mark.parametrize("type_", ["fp32", "fp16", "fp64"])
def test_computed_values_are_not_found_whatever_their_type(type_: str) -> None:
    of: Any = {"fp32": np.float32, "fp16": np.float16, "fp64": np.float64}[type_]
    values = np.exp(VALUES).astype(of)
    assert Search().in_upload(values, type_, [INPUT]) > 0.9 * VALUES.size


def test_without_work_left_values_are_unexplained_and_not_searched_for() -> None:
    search, computed = Search(), np.exp(VALUES)
    search.left = 40 * VALUES.size
    counts = [search.in_upload(computed, "fp32", [INPUT]) for _ in range(20)]
    assert min(counts) > 0.9 * VALUES.size and search.left > -5 * VALUES.size
    assert search.in_upload(VALUES, "fp32", [INPUT]) == VALUES.size


def test_arrays_that_are_chosen_for_the_output_count_each() -> None:
    tables = [Source(np.full((2, 2), level, np.float32), "fp32") for level in range(64)]
    chosen = np.random.default_rng(2).integers(1, 64, 100)
    written = np.concatenate([tables[level].values.reshape(-1) for level in chosen])
    assert Search().in_output(written.view(np.uint8), tables) >= 50


@pytest.mark.parametrize(("stored_as", "type_"), [(E4M3, "fp8e4nv"), (E5M2, "fp8e5")])
def test_float8_values_are_those_that_the_grader_reads(stored_as: NumberType, type_: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    [bits] = Source(codes, type_).converted("fp32")
    assert np.array_equal(bits.view(np.float32), stored_as.decode(codes), equal_nan=True)


def test_gaps_at_irregular_places_count_each() -> None:
    """Two values of each row are left out, at a place that could be a result."""
    gaps = np.random.default_rng(2).integers(8, COLUMNS - 8, ROWS)
    rows = [np.delete(row, [gap, gap + 1]) for row, gap in zip(VALUES, gaps, strict=True)]
    assert Search().in_upload(np.stack(rows), "fp32", [INPUT]) > ROWS // 2
    columns = np.delete(VALUES, [500, 501], 1)
    assert Search().in_upload(columns, "fp32", [INPUT]) <= 4


def test_beginnings_of_arrays_count_each() -> None:
    tables = [Source(row, "fp32") for row in VALUES]
    ends = np.random.default_rng(2).integers(8, COLUMNS - 8, ROWS)
    written = np.concatenate([row[:end] for row, end in zip(VALUES, ends, strict=True)])
    assert Search().in_output(written.view(np.uint8), tables) > ROWS // 2
