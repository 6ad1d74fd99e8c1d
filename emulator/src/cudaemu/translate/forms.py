"""Write all forms of one function: decide which forms it gets, lay out their frame, and write the C around their
blocks."""

from __future__ import annotations

from collections.abc import Collection

from cudaemu.analysis.cfg import Block, Graph, build, is_barrier
from cudaemu.analysis.effects import CARRY, written
from cudaemu.analysis.progress import deciding_values
from cudaemu.analysis.shapes import Kind, Values, analyse
from cudaemu.analysis.ssa import Ssa
from cudaemu.analysis.switches import decided
from cudaemu.analysis.waiting import meetings, waiting_loops
from cudaemu.ptx import Instr, Reg
from cudaemu.translate.control import FormWriter
from cudaemu.translate.frame import Frame
from cudaemu.translate.layout import Layout
from cudaemu.translate.shape_rules import ShapeRules, is_widening
from cudaemu.translate.template import Code, Templates
from cudaemu.translate.types import storage
from cudaemu.translate.ways import ABSENT, form_text

# A kernel with one-dimensional blocks rarely needs the general form, since their size is usually a multiple of 32. If
# the kernel has at most this many instructions in inner loops, gcc compiles them for the general form too: an attention
# kernel with blocks of 100 threads then takes half the time.
COMPILED_TWICE = 400


def write_forms(layout: Layout, templates: Templates, table: str, *, budget: int) -> tuple[list[str], int]:
    """Return the C texts of a function's forms and entry, and the number of instructions for gcc to compile: those of
    inner loops, up to `budget`. `table` is the C name of `templates`."""
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
        linear_rules = ShapeRules(linear=True, per_lane_params=per_lane, wrap_checks=True, floats=floats)
        callees = self.layout.callee_facts
        if not self.layout.fast_forms:
            decided(function)
        graph = build(function)
        ssa = Ssa(graph)
        general_rules = ShapeRules(linear=False, per_lane_params=per_lane, floats=floats)
        meet = meetings(graph, callees)
        if any(_waits_alone(i) for b in graph.blocks for i in b.instrs):
            divided = _divided(graph, analyse(ssa, general_rules))
            self.layout.waits.gathers = _gathers([graph.blocks[n] for n in divided], meet)
        meet = (meet if waiting_loops(graph, callees) else frozenset()) | self.layout.waits.gathers
        fast = self.layout.fast_forms
        values = analyse(ssa, linear_rules) if "linear" in fast else None
        wrap_checks = {
            i.index
            for b in graph.blocks
            for i in b.instrs
            if values is not None and is_widening(i) and i.guard is None and _affine_result(values, i)
        }
        if wrap_checks or meet:
            graph = build(function, frozenset(wrap_checks) | meet)
            ssa = Ssa(graph)
            values = analyse(ssa, linear_rules) if "linear" in fast else None
        self.layout.wrap_checks = wrap_checks
        self.layout.waits.meetings = meet
        self.layout.waits.loops = waiting_loops(graph, callees)
        general = analyse(ssa, general_rules)
        self.layout.deciding = deciding_values(graph, general)
        slow = general
        if self.layout.waits.loops or self.layout.waits.gathers:
            apart_rules = ShapeRules(linear=False, per_lane_params=per_lane, floats=floats, apart=True)
            slow = analyse(ssa, apart_rules, apart=True)
        arguments = [v for v in function.variables if v.space == "param"]
        self.frame = Frame(ssa, slow, self._stored_type, arguments)
        everything = {b.number for b in graph.blocks}
        needed = everything if not fast else self._slow_blocks(graph, general, values or general, bool(wrap_checks))
        texts = {}
        if needed:
            texts["slow"] = self._form(graph, slow, "slow", needed, set())
        if graph.reducible and fast:
            compiled = self._inner_blocks(graph) if values is not None else set[int]()
            if values is not None:
                texts["linear"] = self._form(graph, values, "linear", everything, compiled)
            twice = self._often_needs_general() or (self.spent <= COMPILED_TWICE and not self._is_of_whole_warps())
            texts["general"] = self._form(graph, general, "general", everything, compiled if twice else set())
        return [*texts.values(), self._entry(graph, needed, list(texts))]

    def _inner_blocks(self, graph: Graph) -> set[int]:
        """The blocks for gcc to compile: blocks in loops, the deepest first, and at the same depth those with the
        largest share of f32 instructions, up to the budget."""
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

    def _often_needs_general(self) -> bool:
        """Whether launches often run the general form: they do if the function is not a kernel, or if it reads
        threadIdx.y, because blockDim.x can then be small."""
        items = self.function.body
        return not self.function.entry or any(
            isinstance(o, Reg) and o.name == "%tid.y" for i in items if isinstance(i, Instr) for o in i.operands
        )

    def _is_of_whole_warps(self) -> bool:
        """Whether __launch_bounds__ suggests blocks of whole warps."""
        threads, *_ = self.function.required_threads or self.function.max_threads or (1,)
        return threads % 32 == 0

    def _stored_type(self, register: str) -> str:
        return "pred" if register == CARRY else storage(self.function.registers.get(register, "b32"))

    def _slow_blocks(self, graph: Graph, general: Values, linear: Values, wrap_checks: bool) -> set[int]:
        everything = {b.number for b in graph.blocks}
        if wrap_checks or self.layout.waits.loops or not graph.reducible:
            return everything
        # Take every region in full, even where regions overlap: an inner region can end before the outer region.
        needed = set().union(*(graph.region(number) for number in general.divergent | linear.divergent))
        if any(is_barrier(i) for n in needed for i in graph.blocks[n].instrs):
            return everything
        return needed

    def _form(self, graph: Graph, values: Values, form: str, needed: Collection[int], compiled: Collection[int]) -> str:
        name = f"{self.layout.symbol}_{form}"
        code = Code(self.templates, self.table, f"{name}_code")
        writer = FormWriter(self.layout, graph, values, form, self.frame, code, compiled=compiled)
        ways = [writer.write_block(block) if block.number in needed else ABSENT for block in graph.blocks]
        return form_text(name, ways, code.table(), self.table, writer.targets, writer.cells, "\n".join(writer.lines))

    def _entry(self, graph: Graph, needed: Collection[int], forms: Collection[str]) -> str:
        symbol, layout = self.layout.symbol, self.layout
        barriers = any(is_barrier(i) for n in needed for i in graph.blocks[n].instrs)
        linear = "linear" if "linear" in forms else "general"
        places = ", ".join(f"&{symbol}_{form}" if form in forms else "0" for form in (linear, "general", "slow"))
        gathers = bool(layout.waits.gathers)
        facts = (len(graph.blocks), self.frame.size, layout.local_bytes, self.function.entry, barriers, gathers)
        numbers = ", ".join(str(int(fact)) for fact in facts)
        return (
            "".join(f"extern const struct form {symbol}_{form};\n" for form in forms)
            + f"u32 {symbol}(struct warp *w, u32 m, u32 **prm) {{\n"
            f"static const struct function function = {{{numbers}, {places}}};\n"
            "return rt_run(w, m, prm, &function);\n}\n"
        )


def _waits_alone(instr: Instr) -> bool:
    """Whether lanes can wait one by one at an instruction. At a predicated instruction they cannot, because other lanes
    skip it."""
    return instr.guard is None and (instr.op in ("shfl", "vote", "match", "redux") or instr.mods.action == "warp")


def _gathers(divided: list[Block], meet: frozenset[int]) -> frozenset[int]:
    """Indices of the warp functions at which lanes may arrive separately: those in `meet`, and those that several
    `divided` blocks call."""
    places: dict[str, set[int]] = {}
    for block in divided:
        for instr in block.instrs:
            places.setdefault(instr.text, set()).add(block.number)
    return frozenset(
        i.index for b in divided for i in b.instrs if _waits_alone(i) and (i.index in meet or len(places[i.text]) > 1)
    )


def _divided(graph: Graph, values: Values) -> set[int]:
    """The blocks that a divided warp can run."""
    if not graph.reducible:
        return {b.number for b in graph.blocks}
    return set().union(*(graph.region(number) for number in values.divergent))


def _affine_result(values: Values, instr: Instr) -> bool:
    return any(values.shape[values.of_write(instr, n)].kind is Kind.AFFINE for n in written(instr))
