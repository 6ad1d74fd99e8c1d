"""PTX types and their C types in the generated code."""

from __future__ import annotations

from dataclasses import dataclass

from cudaemu.ptx import BITS

__all__ = ["BITS", "FORMS", "HALVES", "Form", "half_of", "is_float", "is_signed", "narrowed", "storage"]


@dataclass(frozen=True, slots=True)
class Form:
    """The C types of a PTX type: of a scalar, and of a piece, the lanes of a row that fit into a vector register. Rows
    of a `wide` type have twice as many pieces. `broadcast` is the macro that makes a piece from a scalar."""

    scalar: str
    vector: str
    wide: bool
    broadcast: str


_U = Form("u32", "VU", False, "BU")
_I = Form("i32", "VI", False, "BI")
_F = Form("float", "VF", False, "BF")
_Q = Form("u64", "VQ", True, "BQ")
_L = Form("i64", "VL", True, "BL")
_D = Form("double", "VD", True, "BD")

FORMS = {
    "u8": _U, "b8": _U, "s8": _I, "u16": _U, "b16": _U, "s16": _I, "f16": _U, "bf16": _U, "u32": _U, "b32": _U,
    "s32": _I, "f32": _F, "f16x2": _U, "bf16x2": _U, "tf32": _U, "u64": _Q, "b64": _Q, "s64": _L, "f64": _D,
    "u16x2": _U, "s16x2": _U, "e4m3x2": _U, "e5m2x2": _U,
}  # fmt: skip


HALVES = ("f16", "bf16", "f16x2", "bf16x2")
"""Floats without a C type: their bits are stored in a u32."""


def half_of(i: int) -> str:
    """The half of a narrow piece that becomes piece `i` of a wide row."""
    return "hi" if i % 2 else "lo"


def narrowed(text: str, t: str) -> str:
    """A vector of 32-bit lanes truncated to type `t` of 8 or 16 bits, then sign- or zero-extended."""
    if is_signed(t):
        return f"((VI)({text}) << {32 - BITS[t]} >> {32 - BITS[t]})"
    return f"((VU)({text}) & 0x{(1 << BITS[t]) - 1:x}u)"


def storage(declared: str) -> str:
    """The type in which a register of PTX type `declared` is stored: u32 (also for 8 and 16 bits), f32, u64, f64,
    pred."""
    if declared in ("pred", "f32", "f64"):
        return declared
    return "u64" if BITS[declared] == 64 else "u32"


def is_float(t: str) -> bool:
    return t in ("f32", "f64", *HALVES)


def is_signed(t: str) -> bool:
    return t[0] == "s"
