"""Values that a Python program may move, as they are or as another type."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
USUAL = ("fp32", "fp64", "fp16", "bf16")
"""The floating-point types, those first that values are converted from and to most often."""
_SAMPLE, _MOST, _USUAL_SIZES = 1024, 0.75, (2.0**-14, 2.0**15)
"""Unusual are values whose size a normal float16 cannot have. Of float32 numbers near 1, some 0.6 look usual when
taken for bfloat16 or float64."""
TYPE_BYTES = {name: of.itemsize for name, of in STORAGE.items()}
"""The types that values are converted from and to, by Triton's names."""
_FROM_BYTES = {**TYPE_BYTES, "fp8e4nv": 1, "fp8e5": 1}
"""Those that they are converted from: an input has float8 values, but the processor makes none."""


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

    def bits(self, size: int) -> Bits:
        """The stored bits, `size` bytes each."""
        flat = np.ascontiguousarray(self.values).reshape(-1).view(np.uint8)
        return flat[: len(flat) // size * size].view(UNSIGNED[size])

    def converted(self, to: str, rounding: int | None = None) -> Iterator[Bits]:
        """The values as another type, from each type that they may have: those of an unknown type may be
        floating-point numbers. They become bfloat16 in this way, or in each of the ways in which programs round."""
        for of in (self.type,) if self.type else FLOAT_BYTES if to in FLOAT_BYTES else ():
            for way in range(roundings(to)) if rounding is None else (rounding,):
                if of != to:
                    if (key := (of, to, way)) not in self._converted:
                        self._converted[key] = _convert(self.bits(_FROM_BYTES[of]), of, to, way)
                    yield self._converted[key]


def _convert(bits: Bits, of: str, to: str, rounding: int) -> Bits:
    with np.errstate(all="ignore"):
        values = _decoded(bits, of)
        if to != "bf16":
            return values.astype(TYPES[to]).view(UNSIGNED[TYPE_BYTES[to]])
        whole = values.astype(np.float32).view(np.uint32)
        added = (0x7FFF + (whole >> 16 & 1), 0, 0x8000)[rounding]
        return ((whole + added) >> 16).astype(np.uint16)


def _decoded(bits: Bits, of: str) -> NDArray[Any]:
    """The values as one of numpy's types. Float8 values are the upper bits of float16 ones, those of e4m3 with another
    bias, and without infinities."""
    match of:
        case "bf16":
            return (bits.astype(np.uint32) << 16).view(np.float32)
        case "fp8e5":
            return (bits.astype(np.uint16) << 8).view(np.float16)
        case "fp8e4nv":
            sign, others = bits & 0x80, bits & 0x7F
            values = (sign.astype(np.uint16) << 8 | others.astype(np.uint16) << 7).view(np.float16)
            return np.where(others == 0x7F, np.float32(np.nan), values.astype(np.float32) * 256)
    return bits.view(TYPES[of])


@dataclass(frozen=True)
class Form:
    """The bits of a source, which are converted only where they are read, if `to` is a type."""

    bits: Bits
    of: str = ""
    to: str = ""
    rounding: int = 0

    def read(self, bits: Bits) -> Bits:
        """Some of the bits, of any shape, in this form."""
        return _convert(bits, self.of, self.to, self.rounding) if self.to else bits


def forms_as(to: str, sources: Sequence[Source]) -> Iterator[list[Form]]:
    """The sources as another type, for each type that those of an unknown type may have, usual ones first, and for each
    rounding."""
    unknown = USUAL if to in FLOAT_BYTES else (to,)
    for types in dict.fromkeys(tuple(source.type or each for source in sources) for each in unknown):
        pairs = [each for each in zip(sources, types, strict=True) if _is_worth_converting(*each, to)]
        for rounding in range(roundings(to)):
            yield [Form(source.bits(TYPE_BYTES[of]), of, to, rounding) for source, of in pairs]


def _is_worth_converting(source: Source, of: str, to: str) -> bool:
    """Values of an unknown type are hardly of this one if many have unusual sizes. To convert such values to float16
    takes numpy 70 ns each, instead of 3 (numpy 2.4, 2026-11-23)."""
    if of == to or (source.type and to != "fp16"):
        return of != to
    bits = source.bits(TYPE_BYTES[of])
    sizes = np.abs(_convert(bits[:: len(bits) // _SAMPLE | 1], of, "fp64", 0).view(np.float64))
    usual = (sizes == 0) | ((sizes >= _USUAL_SIZES[0]) & (sizes < _USUAL_SIZES[1]))
    return bool(np.count_nonzero(usual) > len(usual) * _MOST)
