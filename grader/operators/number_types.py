"""Types of numbers in files: float32, float16, bfloat16, and the 8-bit floats e4m3 (which has no infinity) and e5m2.

Computations use float32 or float64. A type says how its values are stored in a file, and rounds float32 values to those
that it can represent: to the nearest, ties to even. The 8-bit formats are those of "FP8 Formats for Deep Learning"
(Micikevicius et al., 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

TypeName = Literal["f32", "f16", "bf16", "e4m3", "e5m2"]


@dataclass(frozen=True)
class NumberType:
    """A type of numbers. `storage` is the numpy type that holds its bits. `roundoff` is half the distance from 1 to the
    next number, the largest relative error of rounding."""

    name: TypeName
    words: str
    storage: str
    roundoff: float

    @property
    def bytes(self) -> int:
        return np.dtype(self.storage).itemsize

    def decode(self, stored: NDArray[Any]) -> F32:
        """The float32 values of stored bits; float32 itself is not copied."""
        match self.name:
            case "f32":
                return np.asarray(stored, np.float32)
            case "f16":  # numpy's built-in conversion takes twice as long
                return np.asarray(_of_half()[stored.view(np.uint16)])
            case "bf16":
                return np.asarray((stored.astype(np.uint32) << 16).view(np.float32))
            case _:
                return np.asarray(self._of_byte[stored])

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """The bits of `values`, rounded; float32 itself is not copied. Values of a float64 array are rounded to
        float32 first, except for float16."""
        if self.name in ("f32", "f16"):
            with np.errstate(over="ignore"):
                return values.astype(self.storage, copy=False)
        exact = np.ascontiguousarray(values, np.float32)
        if self.name == "bf16":
            bits = exact.view(np.uint32)
            rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
            return np.asarray(np.where(np.isnan(exact), 0x7FC0, rounded).astype(np.uint16))
        return self._nearest_byte(exact)

    def rounded(self, values: NDArray[Any]) -> F32:
        """`values` rounded to this type, as float32."""
        return self.decode(self.encode(values))

    @cached_property
    def _of_byte(self) -> F32:
        """The value of each byte, for an 8-bit type."""
        codes = np.arange(256, dtype=np.uint16)
        if self.name == "e5m2":  # the upper half of a float16
            return (codes << 8).view(np.float16).astype(np.float32)
        exponent, mantissa = (codes >> 3 & 15).astype(np.int32), (codes & 7).astype(np.float32)
        value = np.where(exponent > 0, np.ldexp(1 + mantissa / 8, exponent - 7), np.ldexp(mantissa / 8, -6))
        value[(codes & 127) == 127] = np.nan
        return np.asarray(np.where(codes & 128, -value, value), np.float32)

    def _nearest_byte(self, values: F32) -> NDArray[np.uint8]:
        """The byte of the nearest value, ties to even. Values that are too large become infinity or, in e4m3, NaN."""
        beyond = 0x7F if self.name == "e4m3" else 0x7C  # one more than the code of the largest finite value
        finite = self._of_byte[:beyond].astype(np.float64)
        between = (finite + np.append(finite[1:], 2 * finite[-1] - finite[-2])) / 2
        size = np.abs(values).astype(np.float64)
        code = np.searchsorted(between, size)
        tie = (code < beyond) & (code % 2 == 1) & (between[np.minimum(code, beyond - 1)] == size)
        code = np.where(np.isnan(values), 0x7F, code + tie)
        return np.asarray(code | np.where(np.signbit(values), 128, 0), np.uint8)


@cache
def _of_half() -> F32:
    """The value of each float16, by its bits."""
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


F32_TYPE = NumberType("f32", "float32", "<f4", 2.0**-24)
F16 = NumberType("f16", "float16", "<f2", 2.0**-11)
BF16 = NumberType("bf16", "bfloat16", "<u2", 2.0**-8)
E4M3 = NumberType("e4m3", "float8 e4m3", "u1", 2.0**-4)
E5M2 = NumberType("e5m2", "float8 e5m2", "u1", 2.0**-3)
