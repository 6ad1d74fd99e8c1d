"""Calls: of translated functions, of the runtime's device functions (printf, malloc, …), and through pointers.

Arguments and results are passed in rows, as in local memory: each row holds one 4-byte word for each lane."""

from __future__ import annotations

from cudaemu.lacking import lacking_in_kernels
from cudaemu.ptx import Instr, Operand, Reg, Sym
from cudaemu.translate.memory import param_rows, param_size
from cudaemu.translate.rows import rows
from cudaemu.translate.writer import Writer, handles


def _rows(w: Writer, operand: Operand) -> str:
    assert isinstance(operand, Sym), operand
    return f"((u32 *){param_rows(w, operand.name)})"


def _check_prototype(w: Writer, name: str, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
    """A function uses the rows of its caller, in number and size as it declares them."""
    if given != wanted:
        raise w.refuse(f"a call of {name} with {given} bytes of arguments and results, expected {wanted},")


def _after(w: Writer, called: str, left: str) -> None:
    """Write code that removes lanes that ended inside the call."""
    w.line(f"{{ const u32 gone = {called} & ~{left}; m &= ~gone, t->left |= gone; }}")
    w.line("if (m == 0) break;")


@handles("call")
def call(w: Writer, instr: Instr) -> None:
    w.pin()
    callee = instr.callee
    passed = (*instr.operands, *instr.results)
    arguments = ", ".join(_rows(w, o) for o in passed)
    sizes = tuple(param_size(w, o.name) for o in passed if isinstance(o, Sym))
    if isinstance(callee, Sym):
        if callee.name in _BUILTINS:
            builtin, wanted = _BUILTINS[callee.name]
            _check_prototype(w, callee.name, sizes, wanted)
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
        _check_prototype(w, callee.name, sizes, w.layout.prototypes[callee.name])
        w.line(f"u32 *args[] = {{{arguments or 'NULL'}}};")
        name = w.fresh("left")
        w.line(f"const u32 {name} = {symbol}(w, {w.mask}, args);")
        _after(w, w.mask, name)
        return
    assert isinstance(callee, Reg)
    site = w.site("CALL")
    w.line(f"u32 *args[] = {{{arguments or 'NULL'}}};")
    w.line(f"static const u32 sizes[] = {{{', '.join(map(str, (*sizes, 0)))}}};")
    rows(w, "to", callee, "u64")
    name = w.fresh("left")
    w.line(f"const u32 {name} = call_pointers(w, {site}, {w.mask}, to, args, sizes, {len(sizes)});")
    _after(w, w.mask, name)


_BUILTINS = {
    "vprintf": ("call_vprintf", (8, 8, 4)),
    "__assertfail": ("call_assertfail", (8, 8, 4, 8, 8)),
    "malloc": ("call_malloc", (8, 8)),
    "free": ("call_free", (8,)),
}
"""Runtime functions that device code calls: their names in steps.h.inc, the bytes of each argument and result."""
