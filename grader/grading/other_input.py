"""Makes another input of the same shape, on which a program does the same if it only moves values."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import MachineFault
from grader.course.testcase import Case
from grader.operators.number_types import NumberType

_MANTISSA_BITS = {"f32": 23, "f16": 10, "bf16": 7, "e4m3": 3, "e5m2": 2}
_CHANGED_BITS = 7
"""As many upper bits of the mantissa as bfloat16 has, so that values stay different when they are rounded."""
_MOST_KEPT, _ALL_KEPT, _DRAWS = 0.5, 0.95, 16


def write_other_values(case: Case, source: Path, target: Path) -> None:
    """Copy an input file, with other values in another order."""
    copy_input(source, target)
    content, dice = np.memmap(target, np.uint8, "r+"), np.random.default_rng()
    masks = dice.integers(1, 1 << _CHANGED_BITS, 512)
    for layout in case.operator.input_layouts(case.shape):
        for unit in range(case.operator.units(case.shape)):
            stored = layout.stored(content, unit)
            changed = other_values(stored, layout.type, masks)
            stored[:] = dice.permutation(changed.reshape(-1)).reshape(stored.shape)


def copy_input(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise MachineFault(f"{target.parent} has no room for a copy of {source.name}: {error.strerror}.") from error


def other_values(stored: NDArray[Any], type_: NumberType, masks: NDArray[np.int64]) -> NDArray[Any]:
    """Stored values, each replaced by one of the same sign and exponent, different values by different ones. Powers of
    two, 0, infinities and NaN stay as they are. There is a mask for each sign and exponent, at most 512.

    Programs may check the range of their input: what would become larger than the largest value or smaller than the
    smallest stays as it is, unless nearly all values would. Other masks are tried if most would."""
    bits = np.ascontiguousarray(stored).view(f"u{type_.bytes}")
    width = _MANTISSA_BITS[type_.name]
    changed = min(_CHANGED_BITS, width)
    upper, mantissa = bits >> width, bits & ((1 << width) - 1)
    exponent_bits = 8 * type_.bytes - 1 - width
    special = (mantissa == 0) | ((upper & ((1 << exponent_bits) - 1)) == (1 << exponent_bits) - 1)
    before = type_.decode(stored)
    finite = before[np.isfinite(before)]
    low, high = finite.min(initial=np.inf), finite.max(initial=-np.inf)
    for draw in range(_DRAWS):
        mask = (np.roll(masks, draw).astype(bits.dtype)[upper] % ((1 << changed) - 1) + 1) << (width - changed)
        kept = special | (mantissa == mask)
        values = np.where(kept, bits, bits ^ mask).astype(bits.dtype).view(stored.dtype).reshape(stored.shape)
        after = type_.decode(values)
        outside = (after < low) | (after > high)
        if outside.mean() < _MOST_KEPT:
            break
    return np.where(outside & (outside.mean() < _ALL_KEPT), stored, values)
