"""Rows: arrays in the generated C with one value per lane. Through them, registers are passed to the runtime and
back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cudaemu.ptx import Operand, items_of
from cudaemu.translate.types import FORMS, half_of

if TYPE_CHECKING:
    from cudaemu.translate.writer import Writer

ALIGNED = "__attribute__((aligned(64)))"


def declare(w: Writer, name: str, t: str = "u32", count: int = 1) -> None:
    """Declare `count` rows of the C type `t`, one after the other."""
    w.line(f"{t} {name}[{32 * count}] {ALIGNED};")


def row_piece(w: Writer, name: str, t: str, i: int, at: int = 0, const: str = "") -> str:
    """Piece `i` of the row that begins at name[at]."""
    step = w.lanes // 2 if FORMS[t].wide else w.lanes
    return f"*({const}{FORMS[t].vector} *)&{name}[{at + i * step}]"


def fill(w: Writer, name: str, operand: Operand, t: str = "u32", read: str = "", at: int = 0) -> None:
    """Write code that stores an operand, read as type `read`, in the row of type `t` that begins at name[at]."""
    for i in w.pieces(t):
        w.line(f"{row_piece(w, name, t, i, at)} = {w.v(operand, read or t, i)};")


def rows(w: Writer, name: str, operand: Operand, t: str = "u32", read: str = "") -> None:
    """Declare t name[32] with all lanes' values of an operand, read as type `read`."""
    declare(w, name, t)
    fill(w, name, operand, t, read)


def value_lanes(w: Writer, item: Operand, read: str, name: str, at: int = 0) -> None:
    """Write code that stores all lanes of a value in u64 name[at..at+31]."""
    for i in w.pieces("u64"):
        text = (
            f"(VQ){w.v(item, read, i)}" if FORMS[read].wide else f"widen_u_{half_of(i)}((VU){w.v(item, read, i // 2)})"
        )
        w.line(f"{row_piece(w, name, 'u64', i, at)} = {text};")


def array(w: Writer, stem: str, count: int, t: str) -> str:
    """Declare rows for `count` registers of type `t`, u32 or u64, under a new name."""
    name = w.fresh(stem)
    declare(w, name, t, count)
    return name


def register_rows(w: Writer, operand: Operand, stem: str, t: str = "u32") -> str:
    """Write code that copies registers to an array of rows."""
    items = items_of(operand)
    name = array(w, stem, len(items), t)
    for k, item in enumerate(items):
        fill(w, name, item, t, at=32 * k)
    return name


def first_lane(w: Writer, operand: Operand, t: str = "u32") -> str:
    """C expression for an operand that all lanes of a warp must agree on: the value of the first active lane."""
    if w.uniform(operand):
        return w.s(operand, t)
    return f"{register_rows(w, operand, 'same', t)}[lowest_lane({w.mask})]"


def rows_from(w: Writer, operand: Operand, name: str, t: str = "u32") -> None:
    """Write code that copies rows of an array to registers."""
    for k, item in enumerate(items_of(operand)):
        w.put(item, t, lambda i, k=k: row_piece(w, name, t, i, 32 * k, "const "))  # type: ignore[misc]
