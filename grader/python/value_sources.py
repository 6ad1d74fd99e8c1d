"""Values that a Python program may move, as they are or as another type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[Any]
"""A flat array of unsigned integers: the bits of values."""
UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
TYPES: dict[str, Any] = {
    "fp16": np.float16, "fp32": np.float32, "fp64": np.float64, "int1": np.bool_,
    "int8": np.int8, "int16": np.int16, "int32": np.int32, "int64": np.int64,
    "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32, "uint64": np.uint64,
}  # fmt: skip
STORAGE = {"bf16": np.dtype(np.uint16), **{name: np.dtype(of) for name, of in TYPES.items()}}
"""For each of Triton's types, the numpy type of the same bits."""
FLOAT_BYTES = {"bf16": 2, "fp16": 2, "fp32": 4, "fp64": 8}
TYPE_BYTES = {name: of.itemsize for name, of in STORAGE.items()}
"""The types that values are converted from and to, by Triton's names."""


def roundings(to: str) -> int:
    """In how many ways programs round to a type: to bfloat16 to nearest with ties to even, by cutting off, or to
    nearest with ties away from 0."""
    return 3 if to == "bf16" else 1


@dataclass
class Source:
    """Values that the program may move: `values` of type `type`, or of an unknown type if that is ''."""

    values: NDArray[Any]
    type: str
    _converted: dict[tuple[str, str, int], Bits] = field(default_factory=dict)

    def bits(self, size: int, order: tuple[int, ...] | None = None) -> Bits:
        """The stored bits, `size` bytes each, with the axes in this order."""
        values = self.values if order is None else self.values.transpose(order)
        flat = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        return flat[: len(flat) // size * size].view(UNSIGNED[size])

    def converted(self, to: str, rounding: int | None = None) -> Iterator[Bits]:
        """The values as another type, from each type that they may have: those of an unknown type may be
        floating-point numbers. They become bfloat16 in this way, or in each of the ways in which programs round."""
        for of in (self.type,) if self.type else FLOAT_BYTES if to in FLOAT_BYTES else ():
            for way in range(roundings(to)) if rounding is None else (rounding,):
                if of != to:
                    if (key := (of, to, way)) not in self._converted:
                        self._converted[key] = _convert(self.bits(TYPE_BYTES[of]), of, to, way)
                    yield self._converted[key]


def _convert(bits: Bits, of: str, to: str, rounding: int) -> Bits:
    with np.errstate(all="ignore"):
        values = (bits.astype(np.uint32) << 16).view(np.float32) if of == "bf16" else bits.view(TYPES[of])
        if to != "bf16":
            return values.astype(TYPES[to]).view(UNSIGNED[TYPE_BYTES[to]])
        whole = values.astype(np.float32).view(np.uint32)
        added = (0x7FFF + (whole >> 16 & 1), 0, 0x8000)[rounding]
        return ((whole + added) >> 16).astype(np.uint16)
