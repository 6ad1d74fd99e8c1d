"""All forms of one function: which it gets, their frame, and the C around their blocks."""

from __future__ import annotations

import re

from grader.emulator.analysis.cfg import Block, Branch, Graph, Switch, build, is_barrier
from grader.emulator.analysis.effects import CARRY, written
from grader.emulator.analysis.shapes import Kind, Ssa, Values, analyse
from grader.emulator.analysis.waiting import idle_until_meeting, meetings, waiting_loops
from grader.emulator.ptx import Instr, Reg
from grader.emulator.translate.control import FormWriter
from grader.emulator.translate.frame import Frame
from grader.emulator.translate.function import Layout
from grader.emulator.translate.shape_rules import ShapeRules, is_widening_guard
from grader.emulator.translate.template import Code, Templates
from grader.emulator.translate.types import storage

# Up to so many instructions of inner loops gcc optimises the general form too where blocks are rows of threads, though
# rows are seldom of another length than warps. Rows of 100 threads take half the time for it (an attention kernel).
COMPILED_TWICE = 400


def write_forms(layout: Layout, templates: Templates, table: str, *, budget: int) -> tuple[list[str], int]:
    """C text of each form of a function, and of its entry. C knows `templates` by the name `table`. Up to `budget` instructions of inner loops are
    for gcc to optimise block by block; the second result is how many are."""
    text = _FunctionText(layout, templates, table, budget)
    return text.parts(), text.spent


class _FunctionText:
    def __init__(self, layout: Layout, templates: Templates, table: str, budget: int) -> None:
        self.layout, self.templates, self.table, self.budget = layout, templates, table, budget
        self.spent = 0
        self.function = layout.function

    def parts(self) -> list[str]:
        function = self.function
        per_lane = frozenset(v.name for v in function.variables if v.space == "param") | (
            frozenset() if function.entry else frozenset(self.layout.params)
        )
        floats = frozenset(name for name, t in function.registers.items() if t in ("f32", "f64"))
        linear_rules = ShapeRules(linear=True, per_lane_params=per_lane, guards=True, floats=floats)
        callees = self.layout.callees_do
        graph = build(function)
        ssa = Ssa(graph, _predicate)
        general_rules = ShapeRules(linear=False, per_lane_params=per_lane, guards=False, floats=floats)
        meet = meetings(graph, callees)
        if any(_waits_alone(i) for b in graph.blocks for i in b.instrs):
            divided = _divided(graph, analyse(ssa, general_rules))
            self.layout.gathers = _gathers([graph.blocks[n] for n in divided], meet)
        meet = (meet if waiting_loops(graph, callees) else frozenset()) | self.layout.gathers
        values = analyse(ssa, linear_rules)
        guards = {
            i.index
            for b in graph.blocks
            for i in b.instrs
            if is_widening_guard(i) and i.guard is None and _affine_result(values, i)
        }
        if guards or meet:
            graph = build(function, frozenset(guards) | meet)
            ssa = Ssa(graph, _predicate)
            values = analyse(ssa, linear_rules)
        self.layout.guards = guards
        self.layout.meetings = meet
        self.layout.waiting = waiting_loops(graph, callees)
        general = analyse(ssa, general_rules)
        self.blocks = len(graph.blocks)
        slow = general
        if self.layout.waiting or self.layout.gathers:
            apart_rules = ShapeRules(linear=False, per_lane_params=per_lane, guards=False, floats=floats, apart=True)
            slow = analyse(ssa, apart_rules, apart=True)
        self.frame = Frame(ssa, slow, self._kept)
        fast = graph.reducible
        needed = self._slow_blocks(graph, general, values, bool(guards))
        texts = []
        if needed:
            texts.append(self._slow(graph, slow, needed))
        if fast:
            compiled = self._inner_blocks(graph)
            texts.append(self._fast(graph, values, "linear", compiled))
            twice = self._is_2d() or self.spent <= COMPILED_TWICE
            texts.append(self._fast(graph, general, "general", compiled if twice else set()))
        texts.append(self._entry(fast))
        prototypes = self._prototypes()
        return [prototypes + text for text in texts]

    def _inner_blocks(self, graph: Graph) -> set[int]:
        """The blocks worth gcc's time: in loops, the deepest first, of these the ones with most arithmetic on floats, while
        the budget lasts."""
        depth = {b.number: sum(b.number in body for body in graph.loops.values()) for b in graph.blocks}

        def worth(block: Block) -> tuple[int, float, int]:
            floats = sum(i.type == "f32" for i in block.instrs)
            return depth[block.number], floats / max(1, len(block.instrs)), -len(block.instrs)

        chosen: set[int] = set()
        spent = 0
        for block in sorted(graph.blocks, key=worth, reverse=True):
            if depth[block.number] and spent + len(block.instrs) <= self.budget:
                chosen.add(block.number)
                spent += len(block.instrs)
        self.spent = spent
        return chosen

    def _is_2d(self) -> bool:
        """Whether launches are likely to need the general form: rows of threads whose length is no multiple of 32."""
        items = self.function.body
        return not self.function.entry or any(
            isinstance(o, Reg) and o.name == "%tid.y" for i in items if isinstance(i, Instr) for o in i.operands
        )

    def _kept(self, register: str) -> str:
        return "pred" if register == CARRY else storage(self.function.registers.get(register, "b32"))

    def _code(self, form: str) -> Code:
        return Code(self.templates, self.table, f"{self.layout.symbol}_{form}_code")

    def _prototypes(self) -> str:
        symbol, args = self.layout.symbol, self._arguments()
        frame = "u8 *F"
        exited = "" if self.function.entry else ", u32 *exited_out"
        return (
            f"\nu32 {symbol}_slow(struct warp *w, {frame}, u32 *pend, u32 next, int stop{args}{exited}, u32 local_base);\n"
            f"u32 {symbol}_linear(struct warp *w, u32 m, {frame}{args}, u32 local_base);\n"
            f"u32 {symbol}_general(struct warp *w, u32 m, {frame}{args}, u32 local_base);\n"
        )

    def _slow_blocks(self, graph: Graph, general: Values, linear: Values, guards: bool) -> set[int]:
        everything = {b.number for b in graph.blocks}
        if guards or self.layout.waiting or not graph.reducible:
            return everything
        # Each region whole, whatever the others hold: a region within it may stop before it does.
        needed = set().union(*(graph.region(number) for number in general.divergent | linear.divergent))
        if any(is_barrier(i) for n in needed for i in graph.blocks[n].instrs):
            return everything
        return needed

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
        code = self._code("slow")
        writer = FormWriter(self.layout, graph, general, "slow", self.frame, code)
        symbol = self.layout.symbol
        n = len(graph.blocks)
        has_barrier = any(is_barrier(i) for b in graph.blocks if b.number in needed for i in b.instrs)
        exited = "" if self.function.entry else ", u32 *exited_out"
        writer.line(
            f"u32 {symbol}_slow(struct warp *w, u8 *F, u32 *pend, u32 next, int stop"
            f"{self._arguments()}{exited}, u32 local_base) {{"
        )
        for text in self._preamble():
            writer.line(text)
        writer.line("u32 m = 0, exited = 0; (void)exited;")
        if has_barrier:
            writer.line(
                f"struct waiting waits[{n + 1}]; memset(waits, 0, sizeof waits); u32 waiting = 0, wait_site = 0;"
            )
        table = ", ".join(f"&&B{i}" if i in needed else "&&missing" for i in range(n + 1))
        writer.line(f"static const void *const to[] = {{{table}}};")
        apart = bool(self.layout.waiting or self.layout.gathers)
        away = "apart.waiting | apart.held" if apart else "0"
        if apart:
            idle = ", ".join(str(int(idle_until_meeting(graph, b, self.layout.callees_do))) for b in range(n))
            writer.line("struct apart apart = {.patience = PATIENCE};")
            if self.layout.gathers:
                writer.line("struct gathering gathering; gathering.offered = gathering.complete = 0;")
            writer.line(f"static const u8 idle[] = {{{idle}}};")
        writer.line("dispatch:;")
        # `next` is the lowest pending block; when it was `stop` and nothing else is pending, all lanes are there.
        writer.line(f"next = next_due(pend, next, {n}, {away});")
        if apart:
            writer.line(f"if (UNLIKELY(apart.waiting | apart.held) && (next >= {n}u || (int)next == stop)) {{")
            writer.line(f"if (rt_take_turns(w, &apart, next < {n}u && !idle[next])) stop = -1;")
            writer.line("else { next = 0; goto dispatch; } }")
        writer.line(f"if (next >= {n}u) {{")
        if has_barrier:
            writer.line(
                f"if (waiting) {{ waiting &= ~wait_together(w, waits, pend, {n}, wait_site); next = 0; goto dispatch; }}"
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
        writer.line(f"m = pend[next] & ~({away}); pend[next] &= ~m;")
        writer.line(f"{{ const u32 at = next; next = next_due(pend, at + 1, {n}, {away}); goto *to[at]; }}")
        for block in graph.blocks:
            if block.number in needed:
                writer.write_block(block)
        # Never reached; were it, `unreachable` would have gcc run on into whatever function lies behind this one.
        writer.line("missing: __builtin_trap();\n}")
        return code.table() + _fix_gotos(writer.lines, needed)

    def _fast(self, graph: Graph, values: Values, form: str, compiled: set[int]) -> str:
        code = self._code(form)
        writer = FormWriter(self.layout, graph, values, form, self.frame, code)
        header = f"u32 {self.layout.symbol}_{form}(struct warp *w, u32 m, u8 *F{self._arguments()}, u32 local_base) {{"
        for block in graph.blocks:
            writer.write_block(block, compiled=block.number in compiled)
        lines = [code.table(), header, *self._preamble(), "(void)F;"]
        if self.function.entry:
            lines.append("#define RETURN_ 0")
        else:
            lines.append("const u32 m_entry = m; u32 left_exited = 0;\n#define LEFT_ (m_entry & ~left_exited)")
        return "\n".join([*lines, *writer.lines, "}", "#undef RETURN_", "#undef LEFT_", ""])

    def _entry(self, fast: bool) -> str:
        symbol = self.layout.symbol
        args = "" if self.function.entry else ", prm"
        local = self.layout.local_bytes
        lines = [
            f"u32 {symbol}(struct warp *w, u32 m, u32 **prm) {{",
            f"(void)prm; u32 r; u8 F[{self.frame.size}] __attribute__((aligned(64)));",
            f"const u32 local_base = *(u32 *)F = {f'take_local(w, m, {local})' if local else 'w->local_top'};",
        ]
        if fast:
            call = f"(w, m, F{args}, local_base)"
            lines.append(f"r = w->linear ? {symbol}_linear{call} : {symbol}_general{call};")
        else:
            extra = "" if self.function.entry else ", prm, &left"
            lines += [
                f"u32 left = 0, pend[{self.blocks + 1}]; memset(pend, 0, sizeof pend); pend[0] = m;",
                f"{symbol}_slow(w, F, pend, 0, -1{extra}, local_base); r = m & ~left;",
            ]
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


def _waits_alone(instr: Instr) -> bool:
    """Whether lanes can wait one by one at an instruction. Other lanes go past a predicated one, so not there."""
    return instr.guard is None and (instr.op in ("shfl", "vote", "match", "redux") or instr.mods.action == "warp")


def _gathers(divided: list[Block], meet: frozenset[int]) -> frozenset[int]:
    """Indices of the warp functions whose lanes may come separately: the first of a block for each mask, and those that
    lanes may also call elsewhere."""
    places: dict[str, set[int]] = {}
    for block in divided:
        for instr in block.instrs:
            places.setdefault(instr.text, set()).add(block.number)
    return frozenset(
        i.index for b in divided for i in b.instrs if _waits_alone(i) and (i.index in meet or len(places[i.text]) > 1)
    )


def _divided(graph: Graph, values: Values) -> set[int]:
    """The blocks that a divided warp may run."""
    if not graph.reducible:
        return {b.number for b in graph.blocks}
    return set().union(*(graph.region(number) for number in values.divergent))


def _affine_result(values: Values, instr: Instr) -> bool:
    return any(values.shape[values.of_write(instr, n)].kind is Kind.AFFINE for n in written(instr))
