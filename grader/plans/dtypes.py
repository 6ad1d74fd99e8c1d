"""The types of a tensor's elements, by PyTorch's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class DType:
    """`storage` is the type of numpy that holds the bits; numpy itself has no bfloat16 and no 8-bit floats."""

    name: str
    storage: str
    is_floating_point: bool = False

    @property
    def itemsize(self) -> int:
        return int(self.storage[1:])

    def __str__(self) -> str:
        return f"torch.{self.name}"  # Triton reads what follows the last point

    __repr__ = __str__


float16, float32, float64 = (DType(f"float{8 * size}", f"f{size}", True) for size in (2, 4, 8))
bfloat16 = DType("bfloat16", "u2", True)
float8_e4m3fn, float8_e5m2 = (DType(f"float8_{kind}", "u1", True) for kind in ("e4m3fn", "e5m2"))
int8, int16, int32, int64 = (DType(f"int{8 * size}", f"i{size}") for size in (1, 2, 4, 8))
uint8, uint16, uint32, uint64 = (DType(f"uint{8 * size}", f"u{size}") for size in (1, 2, 4, 8))
bool_ = DType("bool", "u1")

_ALL = (
    float16, float32, float64, bfloat16, float8_e4m3fn, float8_e5m2, int8, int16, int32, int64, uint8, uint16, uint32,
    uint64, bool_,
)  # fmt: skip
DTYPES = {dtype.name: dtype for dtype in _ALL}
_SMALL = {dtype.name: np.dtype(getattr(ml_dtypes, dtype.name)) for dtype in (bfloat16, float8_e4m3fn, float8_e5m2)}


def dtype_of(named: Any) -> DType:
    """The type that `named` means: a type of this module, of Triton or of numpy, or a name such as "float16"."""
    if isinstance(named, DType):
        return named
    if isinstance(named, type) and named in (bool, int, float):
        return {bool: bool_, int: int64, float: float32}[named]
    name = named.__name__ if isinstance(named, type) else str(named)
    name = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "int1": "bool"}.get(name, name)
    if name not in DTYPES:
        raise TypeError(f"a tensor cannot have elements of type {name}: expected one of {', '.join(DTYPES)}")
    return DTYPES[name]


# ---- numbers as bits ------------------------------------------------------------------------------------------------


def encoded(values: NDArray[Any], dtype: DType) -> bytes:
    """Numbers as elements of `dtype`, rounded to nearest, ties to even."""
    if dtype.name in _SMALL:
        return np.ascontiguousarray(values, np.float32).astype(_SMALL[dtype.name]).tobytes()
    return np.ascontiguousarray(values).astype(dtype.storage).tobytes()


def decoded(bits: NDArray[Any], dtype: DType) -> NDArray[Any]:
    if dtype.name in _SMALL:
        return np.asarray(bits.view(_SMALL[dtype.name]).astype(np.float32))
    return bits.astype(bool) if dtype.name == "bool" else bits
