"""Parses the modifiers of an instruction, the words after the first: global, v4 and f32 in ld.global.v4.f32."""

from __future__ import annotations

import re
from functools import lru_cache

BITS = {
    "pred": 1, "u8": 8, "b8": 8, "s8": 8, "u16": 16, "b16": 16, "s16": 16, "f16": 16, "bf16": 16, "u32": 32, "b32": 32,
    "s32": 32, "f32": 32, "f16x2": 32, "bf16x2": 32, "tf32": 32, "u64": 64, "b64": 64, "s64": 64, "f64": 64,
    "u16x2": 32, "s16x2": 32, "f32x2": 64, "b128": 128, "e4m3x2": 16, "e5m2x2": 16, "e4m3": 8, "e5m2": 8, "s4": 4,
    "u4": 4, "s2": 2, "u2": 2, "b1": 1,
}  # fmt: skip
"""Bits of each PTX type. Types of fewer than 8 bits are predicates and elements of matrices."""

SPACES = ("global", "const", "shared", "local", "param")
_ROUNDINGS = {"rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"}
_OPERATIONS = {
    "add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec", "popc", "all", "any", "uni", "ballot", "up",
    "down", "bfly", "idx",
}  # fmt: skip
_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")


class Modifiers(tuple[str, ...]):
    """The modifiers as words, with `__` for `::`, and their meanings.

    `types`: the types of results and operands, in the order written; `type` is the last one, "" if there is none.
    `action`: the first word other than `cta`, which says what bar, mbarrier, wmma and cp do or setp and testp test.
    `space`: the address space, "generic" if none is named.
    `rounding`: rn, rni, …; "" if none is named.
    `operation`: what atom, red, redux, vote and shfl do, and how setp combines its last operand; "" if none is named.
    `shape`: (m, n, k) of a matrix instruction.
    `two_results`: whether the instruction has two results, as in shfl.sync d|p.
    """

    types: tuple[str, ...]
    type: str
    action: str
    space: str
    rounding: str
    operation: str
    shape: tuple[int, int, int] | None
    two_results: bool

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(words: tuple[str, ...], *, two_results: bool = False) -> Modifiers:
        found = Modifiers(words)
        found.types = tuple(word for word in words if word in BITS)
        found.type = found.types[-1] if found.types else ""
        found.action = next((word for word in words if word != "cta"), "")
        heads = (word.split("__")[0] for word in words)
        found.space = next((head for head in heads if head in SPACES), "generic")
        found.rounding = next((word for word in words if word in _ROUNDINGS), "")
        found.operation = next((word for word in words if word in _OPERATIONS), "")
        shapes = [tuple(map(int, match.groups())) for word in words if (match := _SHAPE.match(word))]
        found.shape = shapes[0] if shapes else None  # type: ignore[assignment]
        found.two_results = two_results
        return found
