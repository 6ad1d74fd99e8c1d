"""Write one form of a PTX function (runtime/warp.h explains the forms): its blocks, and the control flow between them and
between forms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from cudaemu.analysis.cfg import Block, Branch, Gate, Goto, Leave, Switch, is_barrier
from cudaemu.analysis.effects import read, written
from cudaemu.analysis.shapes import Kind
from cudaemu.analysis.waiting import idle_until_meeting, meeting_lanes
from cudaemu.ptx import Imm, Instr
from cudaemu.ptx.model import Loc
from cudaemu.translate.barriers import barrier_operands
from cudaemu.translate.rows import rows
from cudaemu.translate.types import FORMS
from cudaemu.translate.warp_ops import ask, call_number
from cudaemu.translate.ways import NOWHERE, Gather, Way
from cudaemu.translate.writer import Writer


class FormWriter(Writer):
    """A `Writer` that also emits the control flow around instructions. `write_block` returns the `Way` of a block;
    `lines` collects the switch cases of the blocks that contain C code."""

    def __init__(self, *args: Any, compiled: Collection[int] = ()) -> None:
        super().__init__(*args)
        self.compiled = compiled  # numbers of the blocks that gcc compiles, with registers in C variables
        self.targets: list[int] = []  # the targets of all switches
        self.cells: list[int] = []  # the places of the values that decide whether loops end

    def write_block(self, block: Block) -> Way:
        self.block = block.number
        start = len(self.lines)
        first = block.instrs[0].index if block.instrs else None
        expected = 0
        gather: Gather | None = None
        if self.form == "linear" and first in self.layout.wrap_checks:
            self._check_wrap(block)
        if self.slow and first in self.layout.waits.meetings - self.gathered:
            expected = self._hold(block)
        if first in self.gathered:
            gather = self._gather(block)
        if block.number in self.compiled:
            self._in_variables(block)
            self._take_short_cuts(block)
            way = None
        else:
            way = self._in_rows(block)
        if way is None and self._is_choice(block):
            self._choose(block)
        is_code = len(self.lines) > start
        if is_code:
            self.flush()
            case = f"case {block.number}: B{block.number}: ;\n{{"
            self.lines[start:] = [case, *self.lines[start:], f"}}\nat = {block.number}u; break;"]
        rows, end = self.code.take()
        if gather is not None:
            rows, end = gather.begin, gather.end if is_code else end
        way = way or self._way_on(block)
        if way.kind in ("PART", "CHOOSE") and not self.slow and not way.leaves:
            way = self._apart(block, way)
        header = min(block.successors, default=block.number + 1)
        if way.kind != "BARRIER" and header <= block.number:
            way = replace(way, site=self.layout.site(self._loop_loc(block, header), "LOOP", 0, 0))
        if deciding := self.layout.deciding.get(block.number):
            places = [self._deciding_cell(web) for web in deciding.webs]
            way = replace(way, decision=1 + deciding.with_memory, cells=(len(self.cells), len(places)))
            self.cells += places
        idle = self.slow and bool(self.layout.waits.loops or self.layout.waits.gathers)
        return replace(
            way,
            rows=rows,
            end=end,
            gather=gather,
            code=is_code,
            expected=expected,
            waits=block.number in self.layout.waits.loops,
            idle=idle and idle_until_meeting(self.graph, block.number, self.layout.callee_facts),
        )

    def _in_rows(self, block: Block) -> Way | None:
        """Write a block's instructions as threaded code. Return the way from its end if the block ends with a barrier
        and this is the slow form."""
        counting = self.layout.counting
        if counting:
            self.as_row(lambda: counting.enter(self, block))
        for i, instr in enumerate(block.instrs):
            if counting:
                self.as_row(partial(counting.instruction, self, block, i))
            if is_barrier(instr) and self.slow:
                return self._slow_barrier(instr, block)
            self.write(instr)
        if counting:
            self.as_row(lambda: counting.instruction(self, block, len(block.instrs)))
            self._count_end(block)
        return None

    def _count_end(self, block: Block) -> None:
        counting, end = self.layout.counting, block.end
        if counting and isinstance(end, Branch) and self._parts(block, end):
            self.as_row(lambda: counting.parting(self, block, self._condition(block, end)))

    def _in_variables(self, block: Block) -> None:
        """Write a block's instructions with registers in C variables, which are loaded before and stored after."""
        counting = self.layout.counting
        if counting:
            counting.enter(self, block)
        self.flush()
        start = len(self.lines)
        self.in_variables, self.used = True, set()
        for i, instr in enumerate(block.instrs):
            if counting:
                counting.instruction(self, block, i)
            self.write(instr)
        self.in_variables = False
        crossing = sorted(web for web in self.used if not self.values.local[web])
        changed = {self.values.of_write(i, name) for i in block.instrs for name in written(i)}
        declarations = [self._declare(web) for web in sorted(self.used)]
        live = self.values.live_in[block.number]
        loads = [f"{v} = {f};" for web in crossing if web in live for v, f in self._copies(web)]
        self.lines[start:start] = ["{", *declarations, *loads]
        ends = self.values.web_at_end[block.number].values()
        stored = [web for web in sorted(self.used) if web in changed and (web in crossing or web in ends)]
        self.lines += [f"{f} = {v};" for web in stored for v, f in self._copies(web)] + ["}"]

    def _copies(self, web: int) -> Iterator[tuple[str, str]]:
        """The C variables of a web, each with its cell in the frame."""
        stored, shape, place = self.stored_type(self.values.register[web]), self.web_shape(web), self.places[web]
        parts = [""]
        if stored != "pred" and shape.kind is Kind.VECTOR:
            parts = [f"_{i}" for i in self.pieces(stored)]
        elif stored != "pred" and shape.is_dynamic:
            parts = ["", "_s"]
        for part in parts:
            yield f"{self.name(web)}{part}", self._in_frame(web, place, part)

    def _deciding_cell(self, web: int) -> int:
        """A web's place in the frame, with its enum cell_kind of runtime/progress.c."""
        stored, shape = self.stored_type(self.values.register[web]), self.web_shape(web)
        if stored == "pred":
            kind = 0
        elif shape.kind is Kind.VECTOR:
            kind = 5 if FORMS[stored].wide else 4
        else:
            kind = 3 if shape.is_dynamic else 2 if FORMS[stored].wide else 1
        return self.places[web] << 3 | kind

    def _declare(self, web: int) -> str:
        stored, name, shape = self.stored_type(self.values.register[web]), self.name(web), self.web_shape(web)
        if stored == "pred":
            return f"u32 {name};"
        form = FORMS[stored]
        if shape.kind is Kind.VECTOR:
            return f"{form.vector} {', '.join(f'{name}_{i}' for i in self.pieces(stored))};"
        return f"{form.scalar} {name};" + (f" i64 {name}_s;" if shape.is_dynamic else "")

    def _hold(self, block: Block) -> int:
        """Hold lanes at an instruction where lanes wait for each other, until the participants that have waited in
        loops arrive. If the mask of the participants is a literal, return it, and the runtime holds the lanes;
        otherwise write code that holds them, and return 0."""
        self.instr = block.instrs[0]
        mask = meeting_lanes(self.instr, self.layout.callee_facts)
        assert mask is not None
        if isinstance(mask, Imm):
            return mask.value & 0xFFFFFFFF
        self.line("if (UNLIKELY(t->apart.waited & ~m)) {")
        rows(self, "masks", mask)
        self.line(f"if (rt_stay(t, {block.number}, m, named_by(m, masks))) {{ m = 0; break; }} }}")
        return 0

    def _gather(self, block: Block) -> Gather:
        """Write code that makes lanes wait for the lanes that their masks name."""
        instr = self.instr = block.instrs[0]
        members = meeting_lanes(instr, self.layout.callee_facts)
        assert members is not None
        self.as_row(lambda: ask(self, instr, members))
        begin, end = self.code.take()
        return Gather(begin, end, call_number(instr), self.layout.site(instr.loc, "OTHER", 0, 0))

    def _check_wrap(self, block: Block) -> None:
        """Write a check that leaves the linear form for good if an affine index would wrap around in 32 bits."""
        instr = block.instrs[0]
        self.instr = instr
        d = instr.operands[0]
        if self.result_shape(d).kind is not Kind.AFFINE or instr.guard is not None:
            return
        checks = []
        signed = instr.type == "s32"
        for operand in instr.operands[1:3] if instr.op != "cvt" else instr.operands[1:]:
            if self.shape(operand).kind is Kind.AFFINE:
                f = "wraps_i" if signed else "wraps_u"
                checks.append(f"{f}({self.base(operand, 'u32')}, {self.stride(operand)})")
        if not checks:
            return
        self.line(f"if (UNLIKELY({' || '.join(checks)})) {{")
        self._move(self.values.live_in[block.number], self._spill_web)
        self.line(f"t->m = m; rt_depart(w, F, t, {block.number}u); m = 0; break; }}")

    # ---- frame traffic ------------------------------------------------------------------------------------------------

    def _move(self, webs: set[int], write: Callable[[int], None]) -> None:
        """Write rows that copy registers between their places in this form and in the slow form."""
        for web in sorted(webs):
            if not self.values.local[web] and self.places[web] != self.frame.places[web]:
                self.as_row(partial(write, web))

    def _spill_web(self, web: int) -> None:
        stored = self.stored_type(self.values.register[web])
        general, shape = self.frame.general.shape[web], self.web_shape(web)
        if stored == "pred" or general.kind is not Kind.VECTOR:
            self.line(f"{self.frame_cell(web)} = {self.cell(web)};")
            if stored != "pred" and general.is_dynamic:
                stride = self.cell(web, "_s") if shape.is_dynamic else str(shape.stride)
                self.line(f"{self.frame_cell(web, '_s')} = {stride};")
            return
        for i in self.pieces(stored):
            self.line(f"{self.frame_cell(web, f'_{i}')} = {self.web_piece(web, i)};")

    def _reload_web(self, web: int) -> None:
        stored = self.stored_type(self.values.register[web])
        general, shape = self.frame.general.shape[web], self.web_shape(web)
        dynamic = shape.is_dynamic
        if stored == "pred" and shape.kind is Kind.UNIFORM and general.kind is Kind.VECTOR:
            # Lanes that have left keep their bits, so only the bits of lanes in m count.
            self.line(f"{self.cell(web)} = -(u32)(({self.frame_cell(web)} & m) != 0);")
        elif stored == "pred" or general.kind is Kind.UNIFORM:
            self.line(f"{self.cell(web)} = {self.frame_cell(web)};")
        elif shape.kind is Kind.VECTOR:
            for i in self.pieces(stored):
                self.line(f"{self.cell(web, f'_{i}')} = {self.frame_cell(web, f'_{i}')};")
        elif general.kind is Kind.AFFINE:
            self.line(f"{self.cell(web)} = {self.frame_cell(web)};")
            if dynamic:
                stride = self.frame_cell(web, "_s") if general.stride is None else str(general.stride)
                self.line(f"{self.cell(web, '_s')} = {stride};")
        else:  # a vector in the frame, affine here: any two neighbouring live lanes determine it
            t = FORMS[stored].scalar
            lanes = f"((const {t} *)&{self.frame_cell(web, '_0')})"
            first = f"{lanes}[__builtin_ctz(m)]"
            if shape.kind is Kind.UNIFORM:
                self.line(f"{self.cell(web)} = {first};")
            elif dynamic:
                self.line(f"affine_from_lanes_{t}({lanes}, m, &{self.cell(web)}, &{self.cell(web, '_s')});")
            else:
                self.line(f"{self.cell(web)} = {first} - (u32)__builtin_ctz(m) * ({t})({shape.stride}ll);")

    def _apart(self, block: Block, way: Way) -> Way:
        """Extend the way of `block`, at whose end lanes diverge: the slow form runs them until they reconverge, where
        the fast form continues."""
        stop = self.graph.postdominator[block.number]
        meet = stop < self.graph.exit
        region = [self.graph.blocks[number] for number in self.graph.region(block.number)]
        live = set().union(*(self.values.live_in[s] for s in block.successors))
        after = self.values.live_in[stop] if meet else set()
        changed = {self.values.of_write(i, name) for b in region for i in b.instrs for name in written(i)}
        needed = live | after
        # A barrier, or lanes that wait for others, can keep the warp in the slow form to the function's end. Otherwise
        # the slow form reads only the registers that occur in the region.
        stays = any(is_barrier(i) for b in region for i in b.instrs)
        if not stays and not any(b.number in self.layout.waits.loops for b in region):
            reads = {self.values.of_read(i, name) for b in region for i in b.instrs for name in read(i)}
            needed &= changed | reads | {web for b in region for web in self.values.web_at_end[b.number].values()}
        self._move(needed, self._spill_web)
        _, spilled = self.code.take()
        if meet:
            self._move(after & changed, self._reload_web)
        _, reloaded = self.code.take()
        return replace(way, spilled=spilled, reloaded=reloaded, stop=stop if meet else NOWHERE)

    # ---- control flow ---------------------------------------------------------------------------------------------------

    def _loop_loc(self, latch: Block, header: int) -> Loc:
        """The place of a loop: its condition's. If the latch has none, that of the first way out or, in a loop that
        cannot be left, of the branch before it, since compilers move a condition that never changes out of its loop."""
        first_line = max(1, self.function.loc.line)
        if isinstance(latch.end, Branch | Switch) and latch.end.loc.line >= first_line:
            return latch.end.loc
        blocks = [self.graph.blocks[number] for number in self.graph.loops.get(header, {latch.number})]
        inside = {block.number for block in blocks}
        ends = [b.end.loc for b in blocks if isinstance(b.end, Branch | Switch) and not inside.issuperset(b.successors)]
        ends = [loc for loc in ends if loc.line >= first_line]
        own = [i.loc for block in blocks for i in block.instrs if i.loc.line >= first_line]
        at, entries = header, [n for n in self.graph.blocks[header].predecessors if n not in inside]
        while len(entries) == 1 and isinstance(self.graph.blocks[at := entries[0]].end, Goto):
            entries = self.graph.blocks[at].predecessors
        before = self.graph.blocks[at].end
        if len(entries) == 1 and isinstance(before, Branch | Switch) and before.loc.line >= first_line:
            own.append(before.loc)
        return min(ends or own, key=lambda loc: loc.line, default=self.function.loc)

    def _end_web(self, block: Block) -> int:
        return next(iter(self.values.web_at_end[block.number].values()))

    def _parts(self, block: Block, end: Branch) -> bool:
        """Whether lanes may take different sides of a branch."""
        return end.taken != end.fallthrough and self.web_shape(self._end_web(block)).kind is not Kind.UNIFORM

    def _condition(self, block: Block, end: Branch) -> str:
        name = self.cell(self._end_web(block))
        return f"(~{name})" if end.condition.negated else name

    def _way_on(self, block: Block) -> Way:
        """The way that lanes take from the end of a block."""
        end = block.end
        if isinstance(end, Leave):
            return Way(kind="EXIT" if end.exits else "RETURN")
        if isinstance(end, Goto):
            return Way(taken=end.target)
        if isinstance(end, Gate):
            return Way(kind="CHANGE", taken=end.taken, otherwise=end.fallthrough, cell=end.offset, stop=end.count)
        web = self._end_web(block)
        if isinstance(end, Switch):
            first = len(self.targets)
            self.targets += end.targets
            kind = "CHOOSE" if self._is_choice(block) else "SWITCH"
            return Way(kind=kind, taken=first, otherwise=len(end.targets), cell=self.places[web])
        if end.taken == end.fallthrough:
            return Way(taken=end.taken)
        parts = self._parts(block, end)
        return Way(
            kind="PART" if parts else "BRANCH",
            taken=end.taken,
            otherwise=end.fallthrough,
            cell=self.places[web],
            negated=end.condition.negated,
            leaves=self._leaving_side(end) if parts and not self.slow else 0,
        )

    def _leaving_side(self, end: Branch) -> int:
        """1 if the lanes that take a branch leave the function at once, 2 if the other lanes do, else 0."""
        for side, number in enumerate((end.taken, end.fallthrough), 1):
            block = self.graph.blocks[number]
            if isinstance(block.end, Leave) and not block.instrs and (self.function.entry or not block.end.exits):
                return side
        return 0

    def _is_choice(self, block: Block) -> bool:
        """Whether a block ends with a switch for which lanes may choose different targets."""
        return isinstance(block.end, Switch) and self.web_shape(self._end_web(block)).kind is not Kind.UNIFORM

    def _choose(self, block: Block) -> None:
        """Write code that stores each lane's choice of a switch target."""
        web = self._end_web(block)
        for i in self.pieces("u32"):
            self.line(f"*(VU *)&t->index[{i * self.lanes}] = {self.web_piece(web, i)};")
        if self.layout.counting:
            self.layout.counting.switch(self, block)

    def _take_short_cuts(self, block: Block) -> None:
        """Emit jumps from a block compiled as C directly to other such blocks."""
        end = block.end
        if isinstance(end, Goto):
            self._goto("1", end.target)
        elif isinstance(end, Branch) and end.taken != end.fallthrough:
            condition, counting = self._condition(block, end), self.layout.counting
            if self._parts(block, end):
                self.line(f"const u32 go = {condition} & m;")
                if counting:
                    counting.parting(self, block, "go")
                self._goto("go == m", end.taken)
                self._goto("go == 0", end.fallthrough)
            else:
                self._goto(condition, end.taken)
                self._goto(f"!({condition})", end.fallthrough)

    def _goto(self, condition: str, target: int) -> None:
        if target not in self.compiled:
            return
        self.line(f"if ({condition}) {{")
        if target <= self.block:
            form = f"&{self.layout.symbol}_{self.form}"
            edge = f"(struct edge){{{form}, F, m, {self.block}, {target}, {self.function.entry:d}}}"
            if target in self.layout.waits.loops:
                inside = "~0u" if self.function.entry else "m"
                self.line(f"if (UNLIKELY(--w->fuel % WARP_PATIENCE == 0)) rt_wait(w, {edge}, {inside});")
            else:
                self.line(f"if (UNLIKELY(--w->fuel == 0)) rt_poll(w, {edge});")
        self.line(f"goto B{target}; }}")

    def _slow_barrier(self, instr: Instr, block: Block) -> Way | None:
        """Write the arrival of a divided warp's lanes at a barrier, where they wait until the other lanes arrive or
        leave."""
        self.instr = instr
        end = block.end
        assert isinstance(end, Goto)
        if "red" in instr.mods:
            self.line(
                f"if (m != w->live) rt_fault(w, {self.site('BARRIER')}, lowest_lane(m), 719, "
                '"reduction_in_branch", "of:barrier");'
            )
            self.write(instr)
            return None
        literals = [o.value for o in instr.operands if isinstance(o, Imm)]
        if len(literals) == len(instr.operands):
            number, threads, *_ = (*literals, 0, 0)
            site = self.layout.site(instr.loc, "BARRIER", 0, 0)
            return Way(kind="BARRIER", taken=end.target, otherwise=number, stop=threads, site=site)
        operands = ", ".join(barrier_operands(self, instr))
        self.line(f"rt_wait_apart(w, t, {self.site('BARRIER')}, {end.target}u, m, {operands}); m = 0;")
        return None
