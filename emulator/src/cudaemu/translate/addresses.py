"""C text of the addresses that instructions use, by address space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudaemu.analysis.shapes import Kind
from cudaemu.ptx import Imm, Mem, Sym
from cudaemu.translate.rows import declare, row_piece
from cudaemu.translate.types import FORMS, half_of

if TYPE_CHECKING:
    from cudaemu.translate.writer import Writer

SPACE_CODES = {"generic": "SPACE_GENERIC", "global": "SPACE_GLOBAL", "const": "SPACE_GLOBAL", "shared": "SPACE_SHARED",
                "local": "SPACE_LOCAL", "param": "SPACE_PARAM"}  # fmt: skip


def address_type(space: str) -> str:
    return "u32" if space in ("shared", "local") else "u64"


def offset_text(w: Writer, mem: Mem, t: str) -> str:
    return f" + ({t}){w.number(mem.offset)}" if mem.offset else ""


def address_kind(w: Writer, mem: Mem) -> Kind:
    return Kind.UNIFORM if isinstance(mem.base, Sym | Imm) else w.shape(mem.base).kind


def address_stride(w: Writer, mem: Mem) -> int | str:
    if isinstance(mem.base, Sym | Imm):
        return 0
    stride = w.shape(mem.base).stride
    return w.stride(mem.base) if stride is None else stride


def base_address(w: Writer, mem: Mem, t: str) -> str:
    """Lane 0's address, if the lanes' addresses are evenly spaced or all equal."""
    if isinstance(mem.base, Sym):
        return w.s(Sym(mem.base.name, mem.base.offset + mem.offset), t)
    if isinstance(mem.base, Imm):
        return w.s(Imm(mem.base.value + mem.offset), t)
    return f"({w.base(mem.base, t)}{offset_text(w, mem, t)})"


def vector_address(w: Writer, mem: Mem, t: str, i: int) -> str:
    text = w.v(mem.base, t, i)
    return f"({text} + {FORMS[t].broadcast}(({t}){w.number(mem.offset)}))" if mem.offset else text


def lane_addresses(w: Writer, mem: Mem, name: str, space: str) -> None:
    """Write code that stores all lanes' addresses in u64 name[32]."""
    t = address_type(space)
    declare(w, name, "u64")
    if address_kind(w, mem) is not Kind.VECTOR:
        stride = address_stride(w, mem)
        w.line(f"spread_{t}({name}, {base_address(w, mem, t)}, ({t})({stride}));")
        return
    for i in w.pieces("u64"):
        if t == "u64":
            text = vector_address(w, mem, t, i)
        else:
            text = f"widen_u_{half_of(i)}({vector_address(w, mem, t, i // 2)})"
        w.line(f"{row_piece(w, name, 'u64', i)} = {text};")


def address_arguments(w: Writer, mem: Mem, space: str, *, whole: bool = False, row: bool = False) -> tuple[str, str]:
    """The suffix of the rt_load_… or rt_store_… function for an address, and its arguments for the address. If the
    function takes a row of addresses, write code that fills one."""
    if whole:
        lane_addresses(w, mem, "aa", space)
        return "whole", "aa"
    t = address_type(space)
    if address_kind(w, mem) is not Kind.VECTOR and not row:
        return "a", f"{base_address(w, mem, t)}, {address_stride(w, mem)}"
    declare(w, "aa", t)
    for i in w.pieces(t):
        w.line(f"{row_piece(w, 'aa', t, i)} = {vector_address(w, mem, t, i)};")
    return ("w" if t == "u32" else "q"), "aa"
