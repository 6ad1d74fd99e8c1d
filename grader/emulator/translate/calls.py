"""Calls: of translated functions, of the runtime's device functions (printf, malloc, …), and through pointers.

Arguments and results travel in rows, one 4-byte word of all lanes after the other, as local memory does."""

from __future__ import annotations

from grader.emulator.ptx import Instr, Operand, Reg, Sym
from grader.emulator.translate.function import Writer, handles
from grader.emulator.translate.lacking import lacking_in_kernels
from grader.emulator.translate.memory import param_rows


def _rows(w: Writer, operand: Operand) -> str:
    assert isinstance(operand, Sym), operand
    return f"((u32 *){param_rows(w, operand.name)})"


def lane64(rows: str) -> str:
    return f"((u64){rows}[l] | (u64){rows}[32 + l] << 32)"


def _each_lane(w: Writer, body: str) -> None:
    w.line(f"for (u32 l = 0; l < 32; l++) if ({w.mask} >> l & 1) {{ {body} }}")


def _after(w: Writer, called: str, left: str) -> None:
    """Drops lanes that ended inside the call."""
    w.line(f"{{ const u32 gone = {called} & ~{left}; if (UNLIKELY(gone)) {{ m &= ~gone;")
    if not w.function.entry:
        w.line("exited |= gone;" if w.slow else "left_exited |= gone;")
    if w.slow:
        w.line("if (m == 0) goto dispatch;")
    else:
        w.line("if (m == 0) return RETURN_;" if w.function.entry else "if (m == 0) return LEFT_;")
    w.line("} }")


@handles("call")
def call(w: Writer, instr: Instr) -> None:
    w.pin()
    callee = instr.callee
    rows = [_rows(w, o) for o in instr.operands] + [_rows(w, o) for o in instr.results]
    if isinstance(callee, Sym):
        builtin = _BUILTINS.get(callee.name)
        if builtin is not None:
            builtin(w, instr, rows)
            return
        symbol = w.layout.callees.get(callee.name)
        if symbol is None:
            if (found := lacking_in_kernels(callee.name)) is not None:
                raise w.refuse(found.what, found.advice)
            raise w.refuse(
                f"a call of {callee.name}, which is not defined in this program,",
                "define the function in the same file or build with -rdc=true",
            )
        w.line(f"u32 *args[] = {{{', '.join(rows) or 'NULL'}}};")
        name = w.fresh("left")
        w.line(f"const u32 {name} = {symbol}(w, {w.mask}, args);")
        _after(w, w.mask, name)
        return
    assert isinstance(callee, Reg)
    site = w.site("CALL")
    w.line(f"u32 *args[] = {{{', '.join(rows) or 'NULL'}}};")
    w.line("u64 to[32] __attribute__((aligned(64)));")
    for i in w.pieces("u64"):
        w.line(f"*(VQ *)&to[{i * w.lanes // 2}] = {w.v(callee, 'u64', i)};")
    name = w.fresh("left")
    todo = w.fresh("todo")
    w.line(f"u32 {todo} = {w.mask}, {name} = 0;")
    # Lanes that call the same function go together.
    w.line(f"while ({todo}) {{ const u32 l0 = lowest_lane({todo}); u32 same = 0;")
    w.line(f"for (u32 l = 0; l < 32; l++) if (({todo} >> l & 1) && to[l] == to[l0]) same |= 1u << l;")
    w.line(f"{todo} &= ~same; {name} |= rt_function(w, {site}, l0, to[l0])(w, same, args); }}")
    _after(w, w.mask, name)


def _vprintf(w: Writer, instr: Instr, rows: list[str]) -> None:
    fmt, arguments, result = rows
    _each_lane(w, f"{result}[l] = rt_vprintf(w, l, {lane64(fmt)}, {lane64(arguments)});")


def _assertfail(w: Writer, instr: Instr, rows: list[str]) -> None:
    message, file, line, function = rows[:4]
    _each_lane(w, f"rt_assert(w, l, {lane64(message)}, {lane64(file)}, {line}[l], {lane64(function)});")


def _malloc(w: Writer, instr: Instr, rows: list[str]) -> None:
    size, result = rows
    _each_lane(
        w,
        f"const u64 a = rt_malloc(w, l, {lane64(size)}); {result}[l] = (u32)a; {result}[32 + l] = (u32)(a >> 32);",
    )


def _free(w: Writer, instr: Instr, rows: list[str]) -> None:
    _each_lane(w, f"rt_free(w, l, {lane64(rows[0])});")


_BUILTINS = {"vprintf": _vprintf, "__assertfail": _assertfail, "malloc": _malloc, "free": _free}
BUILTIN_NAMES = frozenset(_BUILTINS)
