"""Types of numbers in files: floats of 8 to 64 bits, integers, bool. The names in NumberType are those of ml-dtypes.

Float types of at most 32 bits are computed with as float32, all others as themselves. A type says how its values are
stored in a file, and rounds others to those that it can represent: to the nearest, ties to even. The 8-bit floats e4m3
(which has no infinity) and e5m2 are those of "FP8 Formats for Deep Learning" (Micikevicius et al., 2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


@dataclass(frozen=True)
class NumberType:
    """A type of numbers. `words` is its name in numpy, PyTorch and ml-dtypes or a phrase for it, `c` its name in CUDA.
    `roundoff` is half the distance from 1 to the next number, the largest relative error of rounding; 0 for integers,
    which are exact. `storage` is the numpy type of stored values."""

    name: str
    words: str
    c: str
    roundoff: float
    storage: np.dtype[Any]

    @property
    def computed(self) -> np.dtype[Any]:
        """The numpy type of values outside of files; files of expected output hold it, too."""
        return F32_TYPE.storage if self.is_small_float else self.storage

    @property
    def bytes(self) -> int:
        return self.storage.itemsize

    @property
    def is_small_float(self) -> bool:
        return self.roundoff > F32_TYPE.roundoff

    @property
    def is_integer(self) -> bool:
        return self.roundoff == 0

    def decode(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The values that are stored; what needs no conversion is not copied."""
        if self.is_small_float and self.name != "bf16":  # several times faster than a conversion
            return np.asarray(_values_of(self.storage)[stored.view(f"u{self.bytes}")])
        return np.asarray(stored, self.computed)

    def encode(self, values: NDArray[Any]) -> NDArray[Any]:
        """`values` as they are stored, rounded; what needs no conversion is not copied. Values of a float64 array are
        rounded to float32 first, except for float16 and float64."""
        with np.errstate(over="ignore", invalid="ignore"):
            if self.is_small_float and self.name != "f16":
                values = np.asarray(values, np.float32)
            return values.astype(self.storage, copy=False)

    def rounded(self, values: NDArray[Any]) -> NDArray[Any]:
        """`values` rounded to this type."""
        return self.decode(self.encode(values))


@cache
def _values_of(storage: np.dtype[Any]) -> F32:
    """The value of each pattern of bits of a small type."""
    bits = np.arange(1 << 8 * storage.itemsize).astype(f"u{storage.itemsize}")
    return bits.view(storage).astype(np.float32)


_BYTE = np.dtype("u1")
F32_TYPE = NumberType("f32", "float32", "float", 2.0**-24, np.dtype("<f4"))
F16 = NumberType("f16", "float16", "__half", 2.0**-11, np.dtype("<f2"))
BF16 = NumberType("bf16", "bfloat16", "__nv_bfloat16", 2.0**-8, np.dtype(ml_dtypes.bfloat16))
E4M3 = NumberType("e4m3", "float8 e4m3", "__nv_fp8_e4m3", 2.0**-4, np.dtype(ml_dtypes.float8_e4m3fn))
E5M2 = NumberType("e5m2", "float8 e5m2", "__nv_fp8_e5m2", 2.0**-3, np.dtype(ml_dtypes.float8_e5m2))
F64 = NumberType("f64", "float64", "double", 2.0**-53, np.dtype("<f8"))
I32 = NumberType("i32", "int32", "int", 0, np.dtype("<i4"))
U32 = NumberType("u32", "uint32", "unsigned int", 0, np.dtype("<u4"))
I64 = NumberType("i64", "int64", "long long", 0, np.dtype("<i8"))
U8 = NumberType("u8", "uint8", "unsigned char", 0, _BYTE)
BOOL = NumberType("bool", "bool", "bool", 0, _BYTE)
"""A bool is stored as a byte, since a program may store any."""
