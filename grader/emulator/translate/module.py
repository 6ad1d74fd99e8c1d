"""A PTX module → C source.

The C of a module is one common part (declarations), the tables that the runtime reads, one part per form of a function
and the templates of its threaded code (template.py), so that they can be compiled side by side.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from grader.emulator.analysis.waiting import Callees
from grader.emulator.ptx import Function, Instr, Module, Sym, Variable
from grader.emulator.ptx.model import Loc
from grader.emulator.translate import (
    arith,
    atomics,
    barriers,
    calls,
    convert,
    floats,
    logic,
    memory,
    selection,
    tensor,
    textures,
    video,
    warp_ops,
)
from grader.emulator.translate.counting import Counting, FunctionCounting
from grader.emulator.translate.forms import write_forms
from grader.emulator.translate.function import Layout
from grader.emulator.translate.lacking import DYNAMIC_PARALLELISM
from grader.emulator.translate.refusal import Finding, Refused
from grader.emulator.translate.template import Template, Templates

# PTX instructions of a module, in inner loops, that gcc optimises block by block; the rest is threaded code. One takes gcc
# some 0.5 ms. The classic tiled attention kernel has 450 of them and runs twice as fast for it; both products of each of
# flash2.cu's three kernels have 1,700.
COMPILED_INSTRUCTIONS = 2000
_FAMILIES = (
    arith, atomics, barriers, calls, convert, floats, logic, memory, selection, tensor, textures, video, warp_ops,
)  # fmt: skip


@dataclass(frozen=True)
class Translation:
    """`header` includes the runtime's headers, which templates and parts need; `common` declares what parts need beside;
    `tables` is what the runtime reads, a file of its own. Parts and templates compile independently."""

    header: str
    common: str
    tables: str
    parts: tuple[str, ...]
    templates: tuple[Template, ...]


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


def translate_module(
    module: Module,
    *,
    prefix: str,
    lanes: int,
    registers: Callable[[], dict[str, int]],
    sanitize: frozenset[str] = frozenset(),
    count: bool = False,
) -> tuple[Translation, list[Finding]]:
    """Translates all functions. `prefix` keeps the C names of several modules apart; `lanes` is W of warp.h;
    `registers` gives each kernel's registers per thread; it is called last, since ptxas takes a while. With `count` the
    program counts what counters.h says. With findings the translation must not be used."""
    return _ModuleWriter(module, prefix, lanes, registers, sanitize, Counting() if count else None).run()


class _ModuleWriter:
    def __init__(
        self,
        module: Module,
        prefix: str,
        lanes: int,
        registers: Callable[[], dict[str, int]],
        sanitize: frozenset[str],
        counting: Counting | None,
    ) -> None:
        self.module, self.prefix, self.lanes, self.registers = module, prefix, lanes, registers
        self.sanitize = sanitize & {"race", "init"}
        self.counting = counting
        self.sites = _Sites()
        self.templates = Templates()
        self.findings: list[Finding] = []
        self._used_cache: set[str] | None = None
        self._addressed_cache: set[str] | None = None
        self.names = {name: f"{prefix}_f{i}" for i, name in enumerate(module.functions)}
        self._callees_do = Callees.of(module.functions.values())

    def run(self) -> tuple[Translation, list[Finding]]:
        parts: list[str] = []
        defined = sorted((f for f in self.module.functions.values() if f.defined), key=lambda f: len(f.body))
        budget = COMPILED_INSTRUCTIONS
        for i, function in enumerate(defined):
            try:
                share = budget // (len(defined) - i)  # larger functions share what this one leaves
                written, spent = self._function(function, share)
                parts += written
                budget -= spent
            except Refused as refused:
                self._find(refused)
        common = self._common()
        header = f'#include "{"counters" if self.counting else "warp"}.h"\n'
        translation = Translation(header, common, self._tables(), tuple(parts), tuple(self.templates.every))
        return translation, self._sorted_findings()

    def _sorted_findings(self) -> list[Finding]:
        """By line. Of dynamic parallelism one sentence is enough: it decides how the whole program is built."""
        found = sorted(self.findings, key=lambda f: (f.file or "", f.line or 0))
        launches = [f for f in found if f.what == DYNAMIC_PARALLELISM.what]
        return [f for f in found if f not in launches[1:]]

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
        dynamic = self._dynamic_start(at)
        for v in self.module.variables.values():
            if v.space == "shared" and not v.size:
                offsets[v.name] = dynamic if at else 0
        return offsets, at

    def _dynamic_start(self, static_bytes: int) -> int:
        """Where dynamic shared memory begins: behind the static bytes, aligned as its declarations ask."""
        aligns = [v.align for v in self.module.variables.values() if v.space == "shared" and not v.size]
        align = max(16, *aligns) if aligns else 16
        return -(-static_bytes // align) * align

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

    def _function(self, function: Function, budget: int) -> tuple[list[str], int]:
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
            self._addresses(), self.sites.add, self.lanes, int(re.sub(r"\D", "", self.module.target)),
        )  # fmt: skip
        layout.watched = bool(self.sanitize)
        layout.callees_do = self._callees_do
        layout.counting = FunctionCounting(self.counting, function, shared) if self.counting else None
        return write_forms(layout, self.templates, f"{self.prefix}_templates", budget=budget)

    # ---- common parts -----------------------------------------------------------------------------------------------

    def _common(self) -> str:
        lines = [f"extern template_function *const {self.prefix}_templates[];"]
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
        lines += [f"template_function {t.name};" for t in self.templates.every]
        names = ", ".join(t.name for t in self.templates.every) or "0"
        lines.append(f"template_function *const {self.prefix}_templates[] = {{{names}}};")
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
                image = bytearray(max(item.offset + item.size for item in v.init))  # C makes the rest zero
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
                lines.append(f"static const u8 data_{i}[{v.size}] = {{{','.join(map(str, image))}}};")
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
        registers = self.registers()
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
            dynamic = self._dynamic_start(static_shared) if self._uses_dynamic() else static_shared
            kernels.append(
                f"{{{_c_string(f.name)}, {symbol}, {symbol}_parameters, {len(parts)}, {offset}, {static_shared}, {dynamic}, {local}, "
                f"{registers.get(f.name, 32)}, {threads}, {symbol}_shared, {len(own)}}}"
            )
        lines.append("static const struct kernel_info kernel_table[] = {" + ",\n    ".join([*kernels, "{0}"]) + "};")
        counting = "0"
        if self.counting:
            lines.append(self.counting.tables(lambda loc: index.get(loc.file, unknown) if loc.line else unknown))
            counting = "&counting_tables"
        lines.append(
            f"struct module_info {self.prefix}_module = {{kernel_table, {len(kernels)}, variable_table, {len(variables)}, "
            f"function_table, {len(rows)}, site_table, {len(self.sites.rows)}, files, "
            f"{int('race' in self.sanitize) + 2 * int('init' in self.sanitize)}, {counting}}};"
        )
        return "\n".join(lines) + "\n"

    def _uses_dynamic(self) -> bool:
        return any(v.space == "shared" and not v.size for v in self.module.variables.values())

    def _local_bytes(self, f: Function) -> int:
        declared = sum(-(-v.size // 16) * 16 for v in f.variables if v.space == "local")
        return declared or 16 * any(isinstance(i, Instr) and i.op == "alloca" for i in f.body)


def _c_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
