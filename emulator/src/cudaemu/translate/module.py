"""Translates a PTX module to C source.

The C code for a module consists of a common part (declarations), the tables that the runtime reads, one part per form
of a function, and the templates of the module's threaded code (template.py). All but the common part are compiled in
parallel.
"""

from __future__ import annotations

from dataclasses import dataclass

from cudaemu.analysis.cfg import TooManyLoops
from cudaemu.analysis.hazards import mark_misused_registers
from cudaemu.analysis.in_flight import give_waits_their_results, sums
from cudaemu.analysis.waiting import Callees
from cudaemu.extras import NONE, Extras
from cudaemu.lacking import DYNAMIC_PARALLELISM
from cudaemu.ptx import Function, Module
from cudaemu.translate import (
    arith,
    atomics,
    barriers,
    calls,
    convert,
    floats,
    logic,
    memory,
    selection,
    stores,
    tensor,
    textures,
    video,
    warp_ops,
    watching,
    wgmma,
)
from cudaemu.translate.counting import Counting, FunctionCounting
from cudaemu.translate.facts import Facts, parameter_places
from cudaemu.translate.forms import write_forms
from cudaemu.translate.layout import Layout
from cudaemu.translate.refusal import Refused
from cudaemu.translate.tables import Sites, Tables
from cudaemu.translate.template import Templates
from cudaemu.translated import MissingFeature, Template

# gcc compiles at most this many PTX instructions of a module's inner loops, in whole blocks; the rest is threaded code.
# gcc takes about 0.5 ms per instruction. The inner loops of a tiled attention kernel have 450 instructions, and
# compiling them makes the kernel twice as fast; the loops of both matrix products in flash2.cu's three kernels have
# 1,700.
COMPILED_INSTRUCTIONS = 2000
_FAMILIES = (  # importing these modules registers their handlers
    arith, atomics, barriers, calls, convert, floats, logic, memory, selection, stores, tensor, textures, video, warp_ops,
    watching, wgmma,
)  # fmt: skip


@dataclass(frozen=True)
class Translation:
    """`header` includes the runtime's headers, which templates and parts need; `common` has further declarations for
    parts; `tables`, which the runtime reads, are a separate file, which needs REGISTERS_n, the registers per thread of
    the nth of `kernels`. Each part and each template compiles on its own."""

    header: str
    common: str
    tables: str
    kernels: tuple[str, ...]
    parts: tuple[str, ...]
    templates: tuple[Template, ...]


def translate_module(
    module: Module, *, prefix: str, lanes: int, extras: Extras = NONE
) -> tuple[Translation, list[MissingFeature]]:
    """Translate all functions of `module`. `prefix` keeps the C names of several modules apart; `lanes` is W of
    vectors.h. If there are findings, the translation must not be used."""
    return _ModuleWriter(module, prefix, lanes, extras).run()


class _ModuleWriter:
    def __init__(self, module: Module, prefix: str, lanes: int, extras: Extras) -> None:
        self.module, self.prefix, self.lanes, self.extras = module, prefix, lanes, extras
        self.watching = watching.watch(module) if extras.record else None
        self.counting = Counting() if extras.count else None
        self.facts = Facts(module, prefix)
        self.sites = Sites()
        self.templates = Templates()
        self.findings: list[MissingFeature] = []
        self._callee_facts = Callees.of(module.functions.values())

    def run(self) -> tuple[Translation, list[MissingFeature]]:
        parts: list[str] = []
        defined = sorted((f for f in self.module.functions.values() if f.defined), key=lambda f: len(f.body))
        budget = COMPILED_INSTRUCTIONS
        for i, function in enumerate(defined):
            try:
                share = budget // (len(defined) - i)  # the larger functions share what this function does not use
                written, spent = self._function(function, share)
                parts += written
                budget -= spent
            except Refused as refused:
                self._find(refused)
            except TooManyLoops as many:
                self._find(Refused(f"a function with {many}", many.loc, "use fewer, or move them to functions"))
        header = f'#include "{"counters" if self.counting else "warp"}.h"\n'
        tables = Tables(self.facts, self.sites, self.templates.every, self.findings)
        text = tables.text(self.extras.watch, self.counting, self.watching)
        translation = Translation(
            header, self._common(), text, tuple(tables.kernels), tuple(parts), tuple(self.templates.every)
        )
        return translation, self._sorted_findings()

    def _sorted_findings(self) -> list[MissingFeature]:
        """The findings, sorted by line. Dynamic parallelism is reported once, because it affects how the whole program
        is built."""
        found = sorted(self.findings, key=lambda f: (f.file or "", f.line or 0))
        launches = [f for f in found if f.what == DYNAMIC_PARALLELISM.what]
        return [f for f in found if f not in launches[1:]]

    def _find(self, refused: Refused) -> None:
        file = self.module.files.get(refused.loc.file) if refused.loc.line else None
        finding = MissingFeature(refused.what, file, refused.loc.line or None, refused.advice)
        if finding not in self.findings:
            self.findings.append(finding)

    def _function(self, function: Function, budget: int) -> tuple[list[str], int]:
        mark_misused_registers(function)
        products = sums(function)
        give_waits_their_results(function, products)
        symbol, facts = self.facts.names[function.name], self.facts
        shared, _ = facts.shared(function)
        local, local_bytes = facts.local(function)
        if function.entry:
            params = {name: at for name, (at, _) in parameter_places(function)[0].items()}
        else:
            params = {p.name: i for i, p in enumerate((*function.params, *function.returns))}
        defined = {n: s for n, s in facts.names.items() if self.module.functions[n].defined}
        layout = Layout(
            function, symbol, shared, local, local_bytes, params, defined, facts.addresses, self.sites.add, self.lanes,
            self.module.architecture, {n: facts.prototype(n) for n in defined}, sums=products,
        )  # fmt: skip
        layout.watched = self.extras.watch
        if self.extras.few_runs or self.extras.short_runs:
            layout.fast_forms = () if self.extras.few_runs else ("general",)
        layout.callee_facts = self._callee_facts
        layout.counting = FunctionCounting(self.counting, function, shared) if self.counting else None
        return write_forms(layout, self.templates, f"{self.prefix}_templates", budget=budget)

    def _common(self) -> str:
        """The declarations that the parts share."""
        lines = [f"extern template_function *const {self.prefix}_templates[];"]
        lines += [f"extern u64 {self.facts.global_name(v.name)};" for v in self.facts.globals]
        for name, symbol in self.facts.names.items():
            lines.append(f"u32 {symbol}(struct warp *w, u32 m, u32 **prm);")
            if name in self.facts.addressed:
                lines.append(f"extern u64 {symbol}_address;")
        return "\n".join(lines) + "\n"
