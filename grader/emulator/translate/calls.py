"""Calls: of translated functions, of the runtime's device functions (printf, malloc, …), and through pointers.

Arguments and results are passed in rows, as in local memory: each row holds one 4-byte word for each lane."""

from __future__ import annotations

from grader.emulator.lacking import lacking_in_kernels
from grader.emulator.ptx import Instr, Operand, Reg, Sym
from grader.emulator.translate.memory import param_rows
from grader.emulator.translate.rows import rows
from grader.emulator.translate.writer import Writer, handles


def _rows(w: Writer, operand: Operand) -> str:
    assert isinstance(operand, Sym), operand
    return f"((u32 *){param_rows(w, operand.name)})"


def _after(w: Writer, called: str, left: str) -> None:
    """Write code that removes lanes that ended inside the call."""
    w.line(f"{{ const u32 gone = {called} & ~{left}; m &= ~gone, t->left |= gone; }}")
    w.line("if (m == 0) break;")


@handles("call")
def call(w: Writer, instr: Instr) -> None:
    w.pin()
    callee = instr.callee
    arguments = ", ".join(_rows(w, o) for o in (*instr.operands, *instr.results))
    if isinstance(callee, Sym):
        builtin = _BUILTINS.get(callee.name)
        if builtin is not None:
            w.line(f"{builtin}(w, {w.mask}, {arguments});")
            return
        symbol = w.layout.callees.get(callee.name)
        if symbol is None:
            if (found := lacking_in_kernels(callee.name)) is not None:
                raise w.refuse(found.what, found.advice)
            raise w.refuse(
                f"a call of {callee.name}, which is not defined in this program,",
                "define the function in the same file or build with -rdc=true",
            )
        w.line(f"u32 *args[] = {{{arguments or 'NULL'}}};")
        name = w.fresh("left")
        w.line(f"const u32 {name} = {symbol}(w, {w.mask}, args);")
        _after(w, w.mask, name)
        return
    assert isinstance(callee, Reg)
    site = w.site("CALL")
    w.line(f"u32 *args[] = {{{arguments or 'NULL'}}};")
    rows(w, "to", callee, "u64")
    name = w.fresh("left")
    w.line(f"const u32 {name} = call_pointers(w, {site}, {w.mask}, to, args);")
    _after(w, w.mask, name)


# Runtime functions that device code calls, with their names in steps.h.inc.
_BUILTINS = {
    "vprintf": "call_vprintf", "__assertfail": "call_assertfail", "malloc": "call_malloc", "free": "call_free",
}  # fmt: skip
