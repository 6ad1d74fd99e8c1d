"""A PTX module → C source.

The C of a module is one common part (declarations, tables that the runtime reads) and one part per function, so that
functions can be compiled side by side.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from grader.emulator.analysis.cfg import Block, Branch, Graph, Switch, build, is_barrier
from grader.emulator.analysis.effects import CARRY, written
from grader.emulator.analysis.shapes import Values, analyse
from grader.emulator.ptx import Function, Instr, Module, Sym, Variable
from grader.emulator.ptx.model import Loc
from grader.emulator.translate import arith, atomics, barriers, calls, convert, memory, tensor, warp_ops
from grader.emulator.translate.function import Layout, Writer, declaration
from grader.emulator.translate.refusal import Finding, Refused
from grader.emulator.translate.shape_rules import ShapeRules, is_widening_guard
from grader.emulator.translate.types import storage

# PTX instructions up to which a function gets a general form. Beyond, the slow form, 1.4 times slower on a tiled kernel
# of 16 × 16 threads, saves a third of gcc's time.
GENERAL_INSTRUCTIONS = 400
_FAMILIES = (arith, atomics, barriers, calls, convert, memory, tensor, warp_ops)


@dataclass(frozen=True)
class Part:
    """C text of one form of one function. `hot`: worth optimising well."""

    text: str
    hot: bool


@dataclass(frozen=True)
class Translation:
    """`common` holds declarations that every part needs before it; `tables` is what the runtime reads, a file of its
    own. A part is one form of one function; parts compile independently."""

    common: str
    tables: str
    parts: tuple[Part, ...]


@dataclass
class _Site:
    file: int
    line: int
    kind: str
    size: int
    order: int


class _Sites:
    def __init__(self) -> None:
        self.rows: list[_Site] = []
        self.known: dict[tuple[int, int, str, int], int] = {}

    def add(self, loc: Loc, kind: str, size: int, order: int) -> int:
        if kind in ("LOAD", "STORE", "ATOMIC"):  # each access remembers its own allocation
            self.rows.append(_Site(loc.file, loc.line, kind, size, order))
            return len(self.rows) - 1
        key = (loc.file, loc.line, kind, size)
        if key not in self.known:
            self.rows.append(_Site(loc.file, loc.line, kind, size, order))
            self.known[key] = len(self.rows) - 1
        return self.known[key]


@dataclass(frozen=True)
class KernelFacts:
    """From ptxas, by kernel name: registers a thread; used for launch limits."""

    registers: int


def translate_module(
    module: Module,
    *,
    prefix: str,
    lanes: int,
    registers: dict[str, int],
    sanitize: frozenset[str] = frozenset(),
) -> tuple[Translation, list[Finding]]:
    """Translates all functions. `prefix` keeps the C names of several modules apart; `lanes` is W of warp.h;
    `registers` gives each kernel's registers per thread. With findings the translation must not be used."""
    return _ModuleWriter(module, prefix, lanes, registers, sanitize).run()


class _ModuleWriter:
    def __init__(
        self, module: Module, prefix: str, lanes: int, registers: dict[str, int], sanitize: frozenset[str]
    ) -> None:
        self.module, self.prefix, self.lanes, self.registers = module, prefix, lanes, registers
        self.sanitize = sanitize & {"race", "init"}
        self.sites = _Sites()
        self.findings: list[Finding] = []
        self._used_cache: set[str] | None = None
        self._addressed_cache: set[str] | None = None
        self.names = {name: f"{prefix}_f{i}" for i, name in enumerate(module.functions)}

    def run(self) -> tuple[Translation, list[Finding]]:
        parts: list[Part] = []
        for function in self.module.functions.values():
            if not function.defined:
                continue
            try:
                parts += self._function(function)
            except Refused as refused:
                self._find(refused)
        common = self._common()
        return Translation(common, self._tables(), tuple(parts)), self.findings

    def _find(self, refused: Refused) -> None:
        file = self.module.files.get(refused.loc.file) if refused.loc.line else None
        finding = Finding(refused.what, file, refused.loc.line or None, refused.advice)
        if finding not in self.findings:
            self.findings.append(finding)

    # ---- variables ----------------------------------------------------------------------------------------------

    def _global_name(self, name: str) -> str:
        return f"{self.prefix}_g_" + re.sub(r"\W", lambda m: f"_{ord(m[0]):x}_", name)

    def _globals(self) -> list[Variable]:
        found = [v for v in self.module.variables.values() if v.space in ("global", "const")]
        for f in self.module.functions.values():
            found += [v for v in f.variables if v.space in ("global", "const")]
        return found

    def _addresses(self) -> dict[str, str]:
        result = {v.name: self._global_name(v.name) for v in self._globals()}
        for name in self.module.functions:
            result.setdefault(name, f"{self.names[name]}_address")
        return result

    # ---- functions ------------------------------------------------------------------------------------------------

    def _reached(self, function: Function) -> list[Function]:
        """The function and all it calls, directly or further down."""
        seen: dict[str, Function] = {function.name: function}
        work = [function]
        while work:
            for item in work.pop().body:
                if isinstance(item, Instr) and isinstance(item.callee, Sym):
                    callee = self.module.functions.get(item.callee.name)
                    if callee is not None and callee.name not in seen:
                        seen[callee.name] = callee
                        work.append(callee)
        return list(seen.values())

    def _shared(self, function: Function) -> tuple[dict[str, int], int]:
        """Offsets of shared variables for a function, and static bytes. Module-level variables come first, in the
        same place for all functions of the module; each function's own follow; dynamic memory is last."""
        offsets: dict[str, int] = {}
        at = 0
        used = self._module_shared_used()
        for v in self.module.variables.values():
            if v.space == "shared" and v.size and v.name in used:
                at = -(-at // v.align) * v.align
                offsets[v.name] = at
                at += v.size
        owners = self._reached(function) if function.entry else []
        for f in owners or [function]:
            for v in f.variables:
                if v.space == "shared":
                    at = -(-at // v.align) * v.align
                    offsets[v.name] = at
                    at += v.size
        dynamic = -(-at // 16) * 16
        for v in self.module.variables.values():
            if v.space == "shared" and not v.size:
                offsets[v.name] = dynamic if at else 0
        return offsets, at

    def _shared_variables(self, entry: Function) -> list[Variable]:
        owners = [self.module.variables.values(), *(f.variables for f in self._reached(entry))]
        return [v for variables in owners for v in variables if v.space == "shared"]

    def _module_shared_used(self) -> set[str]:
        if self._used_cache is None:
            used: set[str] = set()
            names = {v.name for v in self.module.variables.values() if v.space == "shared"}
            for f in self.module.functions.values():
                for item in f.body:
                    if isinstance(item, Instr):
                        for o in item.operands:
                            name = getattr(o, "name", None) or getattr(getattr(o, "base", None), "name", None)
                            if name in names:
                                used.add(name)
            self._used_cache = used
        return self._used_cache

    def _function(self, function: Function) -> list[Part]:
        symbol = self.names[function.name]
        shared, _ = self._shared(function)
        local: dict[str, int] = {}
        at = 0
        for v in function.variables:
            if v.space == "local":
                at = -(-at // max(v.align, 4)) * max(v.align, 4)
                local[v.name] = at
                at += v.size
        local_bytes = -(-at // 16) * 16
        params: dict[str, int] = {}
        if function.entry:
            offset = 0
            for p in function.params:
                offset = -(-offset // p.align) * p.align
                params[p.name] = offset
                offset += p.size
        else:
            for i, p in enumerate((*function.params, *function.returns)):
                params[p.name] = i
        layout = Layout(
            function, symbol, shared, local, local_bytes, params,
            {n: s for n, s in self.names.items() if self.module.functions[n].defined},
            self._addresses(), self.sites.add, self.lanes,
        )  # fmt: skip
        layout.watched = bool(self.sanitize)
        return _FunctionText(layout).parts()

    # ---- common parts -----------------------------------------------------------------------------------------------

    def _common(self) -> str:
        lines = ['#include "warp.h"', ""]
        for v in self._globals():
            lines.append(f"extern u64 {self._global_name(v.name)};")
        for name, symbol in self.names.items():
            lines.append(f"u32 {symbol}(struct warp *w, u32 m, u32 **prm);")
            if name in self._addressed():
                lines.append(f"extern u64 {symbol}_address;")
        return "\n".join(lines) + "\n"

    def _addressed(self) -> set[str]:
        """Functions whose address is taken."""
        if self._addressed_cache is not None:
            return self._addressed_cache
        names = set(self.module.functions)
        result: set[str] = set()
        for f in self.module.functions.values():
            for item in f.body:
                if isinstance(item, Instr):
                    result |= {o.name for o in item.operands if isinstance(o, Sym) and o.name in names}
        for v in self._globals():
            result |= {i.symbol for i in v.init if i.symbol in names}
        self._addressed_cache = result
        return result

    def _tables(self) -> str:
        lines = ['#include "module.h"', ""]
        files = sorted(self.module.files.items())
        index = {number: i for i, (number, _) in enumerate(files)}
        lines.append(
            "static const char *const files[] = {"
            + ", ".join(_c_string(p) for _, p in files)
            + (", " if files else "")
            + '""};'
        )
        unknown = len(files)
        lines.append("static const struct site_info site_table[] = {")
        for s in self.sites.rows:
            lines.append(
                f"    {{(const char *)(u64){index.get(s.file, unknown) if s.line else unknown}, {s.line}, SITE_{s.kind}, {s.size}, {s.order}}},"
            )
        lines.append("    {0, 0, 0, 0, 0}};")
        addressed = self._addressed()
        rows = []
        for name in sorted(addressed & {n for n, f in self.module.functions.items() if f.defined}):
            lines.append(f"u64 {self.names[name]}_address;")
            lines.append(f"u32 {self.names[name]}(struct warp *, u32, u32 **);")
            rows.append(f"{{{_c_string(name)}, {self.names[name]}, &{self.names[name]}_address}}")
        lines.append("static const struct function_info function_table[] = {" + ", ".join([*rows, "{0, 0, 0}"]) + "};")
        variables = []
        for i, v in enumerate(self._globals()):
            lines.append(f"u64 {self._global_name(v.name)};")
            data, relocations = "0", "0, 0"
            if v.init:
                image = bytearray(v.size)
                moves = []
                for item in v.init:
                    if item.symbol is None:
                        image[item.offset : item.offset + item.size] = item.value.to_bytes(item.size, "little")
                    elif item.byte in (None, 0):
                        address = self._addresses().get(item.symbol)
                        if address is None:
                            self.findings.append(
                                Finding(
                                    f"the initial value of {v.name} (address of {item.symbol})",
                                    None,
                                    None,
                                    "set it at run time",
                                )
                            )
                            continue
                        moves.append(f"{{{item.offset}, &{address}, {item.value}}}")
                lines.append(f"static const u8 data_{i}[] = {{{','.join(map(str, image))}}};")
                data = f"data_{i}"
                if moves:
                    lines.append(f"static const struct relocation moves_{i}[] = {{{', '.join(moves)}}};")
                    relocations = f"moves_{i}, {len(moves)}"
            space = "VARIABLE_CONST" if v.space == "const" else "VARIABLE_MANAGED" if v.managed else "VARIABLE_GLOBAL"
            variables.append(
                f"{{{_c_string(v.name)}, {v.size}, {v.align}, {space}, &{self._global_name(v.name)}, {data}, {relocations}}}"
            )
        lines.append(
            "static const struct variable_info variable_table[] = {" + ",\n    ".join([*variables, "{0}"]) + "};"
        )
        kernels = []
        for f in self.module.functions.values():
            if not (f.entry and f.defined):
                continue
            shared, static_shared = self._shared(f)
            local = sum(self._local_bytes(g) for g in self._reached(f))
            offset = 0
            parts = []
            for p in f.params:
                offset = -(-offset // p.align) * p.align
                parts.append((offset, p.size))
                offset += p.size
            symbol = self.names[f.name]
            lines.append(f"u32 {symbol}(struct warp *, u32, u32 **);")
            flat = ", ".join(f"{{{a}, {b}}}" for a, b in parts)
            lines.append(
                f"static const struct parameter_info {symbol}_parameters[] = {{{flat}{', ' if flat else ''}{{0, 0}}}};"
            )
            sizes = {v.name: v.size for v in self._shared_variables(f)}
            own = [f"{{{_c_string(n)}, {at}, {sizes[n]}}}" for n, at in shared.items()]
            lines.append(f"static const struct shared_info {symbol}_shared[] = {{{', '.join([*own, '{0}'])}}};")
            limit = f.required_threads or f.max_threads or (0, 0, 0)
            threads = limit[0] * limit[1] * limit[2]
            dynamic = -(-static_shared // 16) * 16 if self._uses_dynamic() else static_shared
            kernels.append(
                f"{{{_c_string(f.name)}, {symbol}, {symbol}_parameters, {len(parts)}, {offset}, {static_shared}, {dynamic}, {local}, "
                f"{self.registers.get(f.name, 32)}, {threads}, {symbol}_shared, {len(own)}}}"
            )
        lines.append("static const struct kernel_info kernel_table[] = {" + ",\n    ".join([*kernels, "{0}"]) + "};")
        lines.append(
            f"struct module_info {self.prefix}_module = {{kernel_table, {len(kernels)}, variable_table, {len(variables)}, "
            f"function_table, {len(rows)}, site_table, {len(self.sites.rows)}, files, "
            f"{int('race' in self.sanitize) + 2 * int('init' in self.sanitize)}}};"
        )
        return "\n".join(lines) + "\n"

    def _uses_dynamic(self) -> bool:
        return any(v.space == "shared" and not v.size for v in self.module.variables.values())

    def _local_bytes(self, f: Function) -> int:
        return sum(-(-v.size // 16) * 16 for v in f.variables if v.space == "local")


class _FunctionText:
    """All forms of one function."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.function = layout.function
        self.pieces = 32 // layout.warp_lanes

    def parts(self) -> list[Part]:
        function = self.function
        per_lane = frozenset(v.name for v in function.variables if v.space == "param") | (
            frozenset() if function.entry else frozenset(self.layout.params)
        )
        linear_rules = ShapeRules(linear=True, per_lane_params=per_lane, guards=True)
        graph = build(function)
        values = analyse(graph, linear_rules, _predicate)
        guards = {
            id(i)
            for b in graph.blocks
            for i in b.instrs
            if is_widening_guard(i) and i.guard is None and _affine_result(values, i)
        }
        if guards:
            graph = build(function, frozenset(guards))
            values = analyse(graph, linear_rules, _predicate)
        self.layout.guards = guards
        general_rules = ShapeRules(linear=False, per_lane_params=per_lane, guards=False)
        general = analyse(graph, general_rules, _predicate)
        if general.register != values.register:
            raise AssertionError("forms of one function must have the same webs")
        self.blocks = len(graph.blocks)
        needed = self._slow_blocks(graph, general, values, bool(guards))
        head = self._frame(general) + self._prototypes()
        fast = graph.reducible
        parts = []
        if needed or len(function.body) >= GENERAL_INSTRUCTIONS:
            needed = needed or {0}
            parts.append(Part(head + self._slow(graph, general, needed), hot=False))
        if fast:
            parts.append(Part(head + self._fast(graph, values, general, "linear"), hot=True))
        # Block shapes that are not a multiple of 32 wide run in the slow form where a form more would take gcc long.
        both = fast and len(function.body) < GENERAL_INSTRUCTIONS
        if both:
            parts.append(Part(head + self._fast(graph, general, general, "general"), hot=True))
        elif fast and not needed >= {b.number for b in graph.blocks}:
            parts[0] = Part(head + self._slow(graph, general, {b.number for b in graph.blocks}), hot=False)
        parts.append(Part(head + self._entry(fast, both), hot=False))
        return parts

    def _prototypes(self) -> str:
        symbol, args = self.layout.symbol, self._arguments()
        frame = f"struct {symbol}_frame *restrict F"
        exited = "" if self.function.entry else ", u32 *exited_out"
        return (
            f"\nu32 {symbol}_slow(struct warp *w, {frame}, u32 *pend, u32 next, int stop{args}{exited}, u32 local_base);\n"
            f"u32 {symbol}_linear(struct warp *w, u32 m, {frame}{args}, u32 local_base);\n"
            f"u32 {symbol}_general(struct warp *w, u32 m, {frame}{args}, u32 local_base);\n"
        )

    def _slow_blocks(self, graph: Graph, general: Values, linear: Values, guards: bool) -> set[int]:
        everything = {b.number for b in graph.blocks}
        if guards or not graph.reducible:
            return everything
        needed: set[int] = set()
        for number in general.divergent | linear.divergent:
            block = graph.blocks[number]
            stop = graph.postdominator[number]
            work = list(block.successors)
            while work:
                node = work.pop()
                if node in needed or node == graph.exit:
                    continue
                if node == stop:
                    continue
                needed.add(node)
                work.extend(graph.blocks[node].successors)
        if any(is_barrier(i) for n in needed for i in graph.blocks[n].instrs):
            return everything
        return needed

    def _frame(self, general: Values) -> str:
        symbol = self.layout.symbol
        lines = [f"#ifndef {symbol}_FRAME\n#define {symbol}_FRAME\nstruct {symbol}_frame {{"]
        for web, register in enumerate(general.register):
            if general.local[web]:
                continue
            kept = "pred" if register == CARRY else storage(self.function.registers.get(register, "b32"))
            name = re.sub(r"\W", "_", register.lstrip("%")) + f"_w{web}"
            lines += declaration(name, kept, general.shape[web], self.pieces)
        lines.append("u32 unused;\n};\n#endif")
        return "\n".join(lines)

    def _param_variables(self) -> list[str]:
        return [
            f"u32 P_{re.sub(chr(92) + 'W', '_', v.name)}[{max(1, -(-v.size // 4)) * 32}] __attribute__((aligned(64)));"
            for v in self.function.variables
            if v.space == "param"
        ]

    def _preamble(self) -> list[str]:
        return [
            "u8 *const sh = w->shared; const u32 shn = w->shared_size; (void)sh; (void)shn; (void)local_base;",
            *self._param_variables(),
        ]

    def _arguments(self) -> str:
        return "" if self.function.entry else ", u32 **prm"

    def _slow(self, graph: Graph, general: Values, needed: set[int]) -> str:
        writer = Writer(self.layout, graph, general, "slow", general.shape)
        symbol = self.layout.symbol
        n = len(graph.blocks)
        has_barrier = any(is_barrier(i) for b in graph.blocks if b.number in needed for i in b.instrs)
        exited = "" if self.function.entry else ", u32 *exited_out"
        writer.line(
            f"u32 {symbol}_slow(struct warp *w, struct {symbol}_frame *restrict F, u32 *pend, u32 next, int stop"
            f"{self._arguments()}{exited}, u32 local_base) {{"
        )
        for text in self._preamble():
            writer.line(text)
        writer.line("u32 m = 0, exited = 0; (void)exited;")
        if has_barrier:
            writer.line(
                f"u32 wait_at[{n + 1}], wait_id[{n + 1}], wait_threads[{n + 1}], waiting = 0, wait_site = 0; memset(wait_at, 0, sizeof wait_at);"
            )
        table = ", ".join(f"&&B{i}" if i in needed else "&&missing" for i in range(n + 1))
        writer.line(f"static const void *const to[] = {{{table}}};")
        writer.line("dispatch:;")
        # `next` is the lowest pending block; when it was `stop` and nothing else is pending, all lanes are there.
        writer.line(f"while (next < {n}u && pend[next] == 0) next++;")
        writer.line(f"if (next >= {n}u) {{")
        if has_barrier:
            writer.line("if (waiting) {")
            writer.line(
                f"u32 id = 0, threads = 0, lanes = 0; for (u32 b = 0; b < {n}u; b++) if (wait_at[b]) {{ id = wait_id[b]; threads = wait_threads[b]; break; }}"
            )
            writer.line(
                f"for (u32 b = 0; b < {n}u; b++) if (wait_at[b] && wait_id[b] == id) {{ lanes |= wait_at[b]; pend[b] |= wait_at[b]; wait_at[b] = 0; }}"
            )
            writer.line(
                "waiting &= ~lanes; rt_barrier(w, wait_site, id, threads, lanes, 0); next = 0; goto dispatch; }"
            )
        if not self.function.entry:
            writer.line("*exited_out |= exited;")
        writer.line("return 0; }")
        # Lanes past `stop` cannot be pending while others are before it: blocks are numbered that way. Only lanes that
        # wait at a barrier can be missing there; then the slow form keeps the warp to its end.
        if has_barrier:
            writer.line("if ((int)next == stop && waiting) stop = -1;")
        writer.line(
            f"if ((int)next == stop) {{ {'' if self.function.entry else '*exited_out |= exited; '}return pend[next]; }}"
        )
        writer.line("m = pend[next]; pend[next] = 0;")
        writer.line("{ const u32 at = next++; while (next < " + f"{n}u && pend[next] == 0) next++; goto *to[at]; }}")
        for block in graph.blocks:
            if block.number in needed:
                writer.write_block(block)
        writer.line("missing: __builtin_unreachable();\n}")
        return _fix_gotos(writer.lines, needed)

    def _fast(self, graph: Graph, values: Values, general: Values, form: str) -> str:
        writer = Writer(self.layout, graph, values, form, general.shape)
        symbol = self.layout.symbol
        header = (
            f"u32 {symbol}_{form}(struct warp *w, u32 m, struct {symbol}_frame *restrict F"
            f"{self._arguments()}, u32 local_base) {{"
        )
        for block in graph.blocks:
            writer.write_block(block)
        lines = [header, *self._preamble(), "(void)F;"]
        if self.function.entry:
            lines.append("#define RETURN_ 0")
        else:
            lines.append("const u32 m_entry = m; u32 left_exited = 0;\n#define LEFT_ (m_entry & ~left_exited)")
        for web in sorted(writer.used):
            lines += writer._declare(web)
        return "\n".join([*lines, *writer.lines, "}", "#undef RETURN_", "#undef LEFT_", ""])

    def _entry(self, fast: bool, both: bool) -> str:
        symbol = self.layout.symbol
        args = "" if self.function.entry else ", prm"
        local = self.layout.local_bytes
        lines = [
            f"u32 {symbol}(struct warp *w, u32 m, u32 **prm) {{",
            "(void)prm;",
            f"struct {symbol}_frame F;",
        ]
        lines.append("const u32 local_base = w->local_top;")
        if local:
            lines.append(
                f'w->local_top += {local}; if (UNLIKELY(w->local_top > w->local_size)) rt_fault(w, ~0u, lowest_lane(m), 700, "local memory (stack) overflow: %u bytes a thread", w->local_size);'
            )
        extra = "" if self.function.entry else ", &left"
        slow = (
            f"u32 left = 0; (void)left; u32 pend[{self.blocks + 1}]; memset(pend, 0, sizeof pend); pend[0] = m; "
            f"{symbol}_slow(w, &F, pend, 0, -1{args}{extra}, local_base); r = m & ~left;"
        )
        lines.append("u32 r;")
        if fast:
            lines.append(f"if (w->linear) r = {symbol}_linear(w, m, &F{args}, local_base); else")
        lines.append(f"r = {symbol}_general(w, m, &F{args}, local_base);" if both else f"{{ {slow} }}")
        lines.append("w->local_top = local_base; return r;\n}")
        return "\n".join(lines)


def _fix_gotos(lines: list[str], needed: set[int]) -> str:
    """In the slow form, blocks outside every divided region are not written: a goto to one parks the lanes instead."""
    text = []
    for line in lines:
        match = re.match(r"if \((\d+)u < next\) goto B(\d+);$", line)
        if match and int(match[1]) not in needed:
            continue
        # Going straight on is right only if the target is not where the caller wants the lanes back.
        if match:
            line = f"if ({match[1]}u < next && {match[1]} != stop) goto B{match[2]};"
        match = re.match(r"pend\[(\d+)\] \|= m; goto dispatch;( })?$", line)
        if match:
            line = f"pend[{match[1]}] |= m; if ({match[1]}u < next) next = {match[1]}u; goto dispatch;{match[2] or ''}"
        text.append(line)
    return "\n".join(text)


def _predicate(block: Block) -> str | None:
    end = block.end
    if isinstance(end, Branch):
        return end.condition.name
    if isinstance(end, Switch):
        return end.index.name
    return None


def _affine_result(values: Values, instr: Instr) -> bool:
    return any(values.shape[values.of_write(instr, n)].kind == 1 for n in written(instr))


def _c_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
