"""The shape of each instruction's result (see analysis/shapes.py)."""

from __future__ import annotations

from collections.abc import Callable

from cudaemu.analysis.effects import CARRY, is_special
from cudaemu.analysis.shapes import DYNAMIC, UNIFORM, VECTOR, Kind, Shape, affine, join
from cudaemu.ptx import Imm, Instr, Mem, Operand, Reg, Sym

ShapeOf = Callable[[str], Shape | None]

# Instructions whose results depend on more than their operands: on memory that others write, on other lanes or on time.
_IMPURE = {
    "atom", "shfl", "vote", "match", "activemask", "redux", "mma", "ldmatrix", "movmatrix", "wmma", "call", "clock",
    "bar", "barrier", "mbarrier", "alloca", "stacksave", "elect", "tex", "tld4", "suld", "txq", "suq",
    "wgmma",
}  # fmt: skip
_UNIFORM_SPECIAL = {
    "%ntid", "%ctaid", "%nctaid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%dynamic_smem_size",
    "%total_smem_size", "%cluster_ctaid", "%cluster_nctaid", "%clusterid", "%nclusterid", "%cluster_ctarank",
    "%cluster_nctarank", "%is_explicit_cluster", "%envreg0", "%envreg1", "%envreg2", "%aggr_smem_size",
    "%reserved_smem_offset_begin", "%reserved_smem_offset_end", "%reserved_smem_offset_cap",
    "%reserved_smem_offset_0", "%reserved_smem_offset_1",
}  # fmt: skip
_INTEGER = ("u32", "s32", "b32", "u64", "s64", "b64")


def wrapped(stride: int, bits: int) -> int:
    """A stride as a signed number of `bits` bits."""
    stride &= (1 << bits) - 1
    return stride - (1 << bits) if stride >> (bits - 1) else stride


def special_shape(name: str, *, linear: bool) -> Shape:
    """The shape of a special register in the `linear` form or in the others."""
    base = name.split(".")[0]
    if base == "%laneid":
        return affine(1)
    if base == "%tid" and linear:
        return affine(1) if name.endswith(".x") else UNIFORM
    return UNIFORM if base in _UNIFORM_SPECIAL else VECTOR


class ShapeRules:
    """The rules for one form. `linear`: blockDim.x is a multiple of 32. `per_lane_params`: names of the function's own
    .param variables that hold values per lane. `wrap_checks`: a rule for a widening instruction can assume that
    no lane wraps around, because a check at run time leaves the form if one does. `floats`: registers that hold floats;
    they never get an affine shape, even if their bits come from an affine integer. `apart`: lanes may execute a load at
    different times, with a store in between."""

    def __init__(
        self,
        *,
        linear: bool,
        per_lane_params: frozenset[str],
        wrap_checks: bool = False,
        floats: frozenset[str] = frozenset(),
        apart: bool = False,
    ) -> None:
        self.linear = linear
        self.per_lane = per_lane_params
        self.wrap_checks = wrap_checks
        self.floats = floats
        self.apart = apart

    def __call__(self, instr: Instr, shape_of: ShapeOf, name: str) -> Shape | None:
        op = instr.op
        if op in _IMPURE:
            return VECTOR
        if op in ("ld", "ldu"):
            return self._load(instr, shape_of)
        shapes = [self._operand(o, shape_of) for o in instr.sources]
        if op in ("addc", "subc", "madc"):
            shapes.append(shape_of(CARRY))
        if any(s is None for s in shapes):
            return None
        known: list[Shape] = [s for s in shapes if s is not None]
        if all(s == UNIFORM for s in known):
            return UNIFORM
        if any(s == VECTOR for s in known) or name == CARRY or name in self.floats or op in ("addc", "subc", "madc"):
            return VECTOR
        return self._affine(instr, known)

    def _operand(self, operand: Operand, shape_of: ShapeOf) -> Shape | None:
        if isinstance(operand, Reg):
            if is_special(operand.name):
                return special_shape(operand.name, linear=self.linear)
            return shape_of(operand.name)
        if isinstance(operand, Imm | Sym):
            return UNIFORM
        if isinstance(operand, Mem):
            return self._operand(operand.base, shape_of)
        result: Shape | None = None
        for item in operand.items:
            one = self._operand(item, shape_of)
            if one is None:
                return None
            result = join(result, one)
        return VECTOR if result is not None and result.kind is Kind.AFFINE else result

    def _load(self, instr: Instr, shape_of: ShapeOf) -> Shape | None:
        mods = instr.mods
        address = instr.operands[1]
        if "volatile" in mods or "acquire" in mods or "relaxed" in mods or not isinstance(address, Mem):
            return VECTOR
        if isinstance(address.base, Sym) and address.base.name in self.per_lane:
            return VECTOR
        if mods.space not in (("const", "param") if self.apart else ("global", "shared", "const", "param")):
            return VECTOR
        shape = self._operand(address.base, shape_of)
        if shape is None or shape == UNIFORM:
            return shape
        return VECTOR

    def _affine(self, instr: Instr, shapes: list[Shape]) -> Shape:
        """The shape of a result whose operands are uniform or affine, at least one of them affine."""
        op, mods, operands = instr.op, instr.mods, instr.operands
        kind = instr.type
        bits = 64 if kind.endswith("64") else 32
        if kind not in _INTEGER or "sat" in mods or "cc" in mods:
            return VECTOR
        if op in ("mov", "cvta"):
            return shapes[0]
        if op in ("add", "sub"):
            a, b = shapes
            if a.stride is None or b.stride is None:
                return DYNAMIC
            return affine(wrapped(a.stride + b.stride if op == "add" else a.stride - b.stride, bits))
        if op == "neg":
            return DYNAMIC if shapes[0].stride is None else affine(wrapped(-shapes[0].stride, bits))
        wide = kind if "wide" in mods and self.wrap_checks and kind in ("s32", "u32") else ""
        if op in ("mul", "mad") and ("lo" in mods or wide):
            bits = 64 if wide else bits
            product = self._product(shapes[0], shapes[1], operands[1], operands[2], bits, wide)
            if op == "mul" or product == VECTOR:
                return product
            c = shapes[2]
            if product.stride is None or c.stride is None:
                return DYNAMIC
            return affine(wrapped(product.stride + c.stride, bits))
        if op == "shl" and shapes[1] == UNIFORM:
            amount = operands[2]
            if isinstance(amount, Imm) and shapes[0].stride is not None:
                return affine(wrapped(shapes[0].stride << amount.value, bits)) if amount.value < bits else UNIFORM
            return DYNAMIC
        if op == "cvt" and len(mods) == 2 and mods.types[0] in _INTEGER:
            if mods.types[0].endswith("32"):
                stride = shapes[0].stride
                return shapes[0] if stride is None else affine(wrapped(stride, 32))
            if kind.endswith("64") or (self.wrap_checks and kind in ("s32", "u32")):
                return shapes[0]
        return VECTOR

    def _product(self, a: Shape, b: Shape, x: Operand, y: Operand, bits: int, wide: str = "") -> Shape:
        if a.kind is Kind.AFFINE and b.kind is Kind.AFFINE:
            return VECTOR
        if a == b == UNIFORM:
            return UNIFORM
        if a.kind is Kind.UNIFORM:
            a, b, x, y = b, a, y, x
        if isinstance(y, Imm) and y.width == 0 and a.stride is not None:
            factor = y.value & 0xFFFFFFFF if wide == "u32" else wrapped(y.value, 32) if wide else y.value
            return affine(wrapped(a.stride * factor, bits))
        return DYNAMIC


def is_widening(instr: Instr) -> bool:
    """Whether the instruction widens 32 bits to 64: its result is affine only if no lane wraps around in 32 bits."""
    if instr.op == "cvt":
        to = instr.mods.types[:1]
        return len(instr.mods) == 2 and to in (("u64",), ("s64",), ("b64",)) and instr.type in ("s32", "u32")
    return instr.op in ("mul", "mad") and "wide" in instr.mods
