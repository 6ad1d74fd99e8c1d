"""The input of the run for comparison."""

from __future__ import annotations

import numpy as np
import pytest

from grader.grading.other_input import other_values
from grader.operators.number_types import BF16, E4M3, E5M2, F16, F32_TYPE, NumberType


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


def test_values_of_the_other_input_stay_in_the_range_of_the_input() -> None:
    stored = np.random.default_rng(1).uniform(80, 100, 4000).astype(np.float32)
    other = other_values(stored, F32_TYPE, np.random.default_rng(3).integers(1, 128, 512))
    assert stored.min() <= other.min() and other.max() <= stored.max()
    assert (other != stored).mean() > 0.3
