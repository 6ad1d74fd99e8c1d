"""The types of a tensor's elements, by PyTorch's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class DType:
    """`storage` is the same type in numpy, which has bfloat16 and the 8-bit floats from ml_dtypes."""

    name: str
    storage: np.dtype[Any]

    @property
    def itemsize(self) -> int:
        return self.storage.itemsize

    @property
    def is_floating_point(self) -> bool:
        return "float" in self.name

    def __str__(self) -> str:
        return f"torch.{self.name}"  # Triton reads what follows the last point

    __repr__ = __str__


_NAMES = (
    "float16", "float32", "float64", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8", "int16", "int32", "int64",
    "uint8", "uint16", "uint32", "uint64", "bool",
)  # fmt: skip
_SHORT = {"fp": "float", "f": "float", "bf": "bfloat", "i": "int", "u": "uint"}
"""How Triton begins the names of types, as in fp16."""
DTYPES = {name: DType(name, np.dtype(getattr(ml_dtypes, name, name))) for name in _NAMES}
float16, float32, uint8 = DTYPES["float16"], DTYPES["float32"], DTYPES["uint8"]


def dtype_of(named: Any) -> DType:
    """The type that `named` means: a type of this module, of Triton, numpy or Python, or a name such as "float16"."""
    if isinstance(named, DType):
        return named
    if isinstance(named, type) and named in (bool, int, float):
        named = {bool: "bool", int: "int64", float: "float32"}[named]
    name = named.__name__ if isinstance(named, type) else str(named)
    letters = name.rstrip("0123456789")
    name = "bool" if name in ("i1", "int1", "u1") else _SHORT.get(letters, letters) + name[len(letters) :]
    if name not in DTYPES:
        raise TypeError(f"tensors and kernels have no numbers of type {name}: expected one of {', '.join(DTYPES)}")
    return DTYPES[name]


def encoded(values: ArrayLike, dtype: DType) -> bytes:
    """Numbers as elements of `dtype`, rounded to nearest, ties to even."""
    return np.asarray(values).astype(dtype.storage).tobytes()
