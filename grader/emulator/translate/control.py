"""Writes one form of a PTX function: its blocks, and how control passes between them and between forms."""

from __future__ import annotations

from collections.abc import Iterator

from grader.emulator.analysis.cfg import Block, Branch, Goto, Leave, Switch, is_barrier
from grader.emulator.analysis.effects import read, written
from grader.emulator.analysis.shapes import Kind
from grader.emulator.analysis.waiting import meeting_lanes
from grader.emulator.ptx import Instr
from grader.emulator.ptx.model import Loc
from grader.emulator.translate.barriers import barrier_operands
from grader.emulator.translate.function import Writer
from grader.emulator.translate.types import FORMS
from grader.emulator.translate.warp_ops import gather


class FormWriter(Writer):
    """Adds to the instructions' writer what surrounds instructions."""

    def write_block(self, block: Block, *, compiled: bool = False) -> None:
        self.block = block.number
        self.line(f"B{block.number}: ;")
        self.line("{")
        if self.form == "linear" and block.instrs and block.instrs[0].index in self.layout.guards:
            self._guard_entry(block)
        if self.slow and block.instrs and block.instrs[0].index in self.layout.meetings - self.gathered:
            self._hold(block)
        if block.instrs and block.instrs[0].index in self.gathered:
            self._gather(block)
        if self.layout.counting:
            self.layout.counting.enter(self, block)
        if compiled:
            self._in_variables(block)
        elif not self._in_rows(block):
            self.line("}")
            return
        self._count_instruction(block, len(block.instrs))
        self._terminate(block)
        self.line("}")

    def _count_instruction(self, block: Block, index: int) -> None:
        if self.layout.counting:
            self.layout.counting.instruction(self, block, index)

    def _in_rows(self, block: Block) -> bool:
        """Writes a block's instructions as threaded code. False when the block ends at a barrier of the slow form, which
        goes on by itself."""
        for i, instr in enumerate(block.instrs):
            self._count_instruction(block, i)
            if is_barrier(instr) and self.slow:
                self._slow_barrier(instr, block)
                return False
            self.write(instr)
        return True

    def _in_variables(self, block: Block) -> None:
        """Writes a block's instructions with registers in C variables, which are loaded before and stored after."""
        self.flush()
        start = len(self.lines)
        self.in_variables, self.used = True, set()
        for i, instr in enumerate(block.instrs):
            self._count_instruction(block, i)
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
        """Pairs of a variable and where it lies in the frame."""
        kept, shape, place = self.declared(self.values.register[web]), self.web_shape(web), self.places[web]
        parts = [""]
        if kept != "pred" and shape.kind is Kind.VECTOR:
            parts = [f"_{i}" for i in self.pieces(kept)]
        elif kept != "pred" and shape.is_dynamic:
            parts = ["", "_s"]
        for part in parts:
            yield f"{self.name(web)}{part}", self._in_frame(web, place, part)

    def _declare(self, web: int) -> str:
        kept, name, shape = self.declared(self.values.register[web]), self.name(web), self.web_shape(web)
        if kept == "pred":
            return f"u32 {name};"
        form = FORMS[kept]
        if shape.kind is Kind.VECTOR:
            return f"{form.vector} {', '.join(f'{name}_{i}' for i in self.pieces(kept))};"
        return f"{form.scalar} {name};" + (f" i64 {name}_s;" if shape.is_dynamic else "")

    def _hold(self, block: Block) -> None:
        """Has lanes stay where lanes meet while others that take part have waited elsewhere and are still to come."""
        self.instr = block.instrs[0]
        mask = meeting_lanes(self.instr, self.layout.callees_do)
        assert mask is not None
        self.line("if (UNLIKELY(apart.waited & ~m)) { u32 expected = 0;")
        if self.uniform(mask):
            self.line(f"expected = {self.s(mask, 'u32')};")
        else:
            self.line("u32 masks[32] __attribute__((aligned(64)));")
            for i in self.pieces("u32"):
                self.line(f"*(VU *)&masks[{i * self.lanes}] = {self.v(mask, 'u32', i)};")
            self.line("expected = named_by(m, masks);")
        self.line(
            f"if (rt_hold(&apart, pend, {len(self.graph.blocks)}, expected & ~m)) {{ pend[{block.number}] |= m; apart.held |= m; goto dispatch; }} }}"
        )

    def _gather(self, block: Block) -> None:
        self.instr = block.instrs[0]
        members = meeting_lanes(self.instr, self.layout.callees_do)
        assert members is not None
        self.line("{")
        gather(self, self.instr, members)
        self.line("}")

    def _guard_entry(self, block: Block) -> None:
        """Leaves the linear form for good when an affine index would wrap around in 32 bits."""
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
        self._spill(self.values.live_in[block.number])
        self._call_slow(f"pend[{block.number}] = m;", f"{block.number}u", -1)
        self._leave_after_slow()
        self.line("}")

    # ---- frame traffic ------------------------------------------------------------------------------------------------

    def _in_place(self, web: int) -> bool:
        """Whether this form keeps a register where, and as, the slow form does."""
        return self.places[web] == self.frame.places[web]

    def _spill(self, webs: set[int]) -> None:
        for web in sorted(webs):
            if self.values.local[web] or self._in_place(web):
                continue
            kept = self.declared(self.values.register[web])
            general, shape = self.frame.general.shape[web], self.web_shape(web)
            if kept == "pred" or general.kind is not Kind.VECTOR:
                self.line(f"{self.frame_cell(web)} = {self.cell(web)};")
                if kept != "pred" and general.is_dynamic:
                    stride = self.cell(web, "_s") if shape.is_dynamic else str(shape.stride)
                    self.line(f"{self.frame_cell(web, '_s')} = {stride};")
                continue
            for i in self.pieces(kept):
                self.line(f"{self.frame_cell(web, f'_{i}')} = {self.web_piece(web, i)};")

    def _reload(self, webs: set[int]) -> None:
        for web in sorted(webs):
            if self.values.local[web] or self._in_place(web):
                continue
            kept = self.declared(self.values.register[web])
            general, shape = self.frame.general.shape[web], self.web_shape(web)
            dynamic = shape.is_dynamic
            if (
                kept == "pred" and shape.kind is Kind.UNIFORM and general.kind is Kind.VECTOR
            ):  # lanes that have left keep what they had
                self.line(f"{self.cell(web)} = -(u32)(({self.frame_cell(web)} & m) != 0);")
            elif kept == "pred" or general.kind is Kind.UNIFORM:
                self.line(f"{self.cell(web)} = {self.frame_cell(web)};")
            elif shape.kind is Kind.VECTOR:
                for i in self.pieces(kept):
                    self.line(f"{self.cell(web, f'_{i}')} = {self.frame_cell(web, f'_{i}')};")
            elif general.kind is Kind.AFFINE:
                self.line(f"{self.cell(web)} = {self.frame_cell(web)};")
                if dynamic:
                    stride = self.frame_cell(web, "_s") if general.stride is None else str(general.stride)
                    self.line(f"{self.cell(web, '_s')} = {stride};")
            else:  # a vector in the frame that this form knows to be even: any two neighbouring live lanes tell
                t = FORMS[kept].scalar
                lanes = f"((const {t} *)&{self.frame_cell(web, '_0')})"
                first = f"{lanes}[__builtin_ctz(m)]"
                if shape.kind is Kind.UNIFORM:
                    self.line(f"{self.cell(web)} = {first};")
                elif dynamic:
                    self.line(f"affine_from_lanes_{t}({lanes}, m, &{self.cell(web)}, &{self.cell(web, '_s')});")
                else:
                    self.line(f"{self.cell(web)} = {first} - (u32)__builtin_ctz(m) * ({t})({shape.stride}ll);")

    def _run_apart(self, block: Block, start: str, first: str) -> None:
        """Has the slow form run the lanes that part after `block`, and goes on where they meet. `start` fills `pend`."""
        stop = self.graph.postdominator[block.number]
        meet = stop < self.graph.exit
        region = [self.graph.blocks[number] for number in self.graph.region(block.number)]
        live = set().union(*(self.values.live_in[s] for s in block.successors))
        after = self.values.live_in[stop] if meet else set()
        changed = {self.values.of_write(i, name) for b in region for i in b.instrs for name in written(i)}
        needed = live | after
        # A barrier or lanes that wait for others may keep the slow form to the warp's end. Otherwise it sees only what
        # its region names.
        stays = any(is_barrier(i) for b in region for i in b.instrs)
        if not stays and not any(b.number in self.layout.waiting for b in region):
            reads = {self.values.of_read(i, name) for b in region for i in b.instrs for name in read(i)}
            needed &= changed | reads | {web for b in region for web in self.values.web_at_end[b.number].values()}
        self._spill(needed)
        self._call_slow(start, first, stop if meet else -1)
        if not meet:
            self._leave_after_slow()
            return
        self.line(f"if (m == 0) {self._leave_text()}")
        self._reload(after & changed)
        self._goto(stop)

    # ---- control flow ---------------------------------------------------------------------------------------------------

    def _goto(self, target: int) -> None:
        back = target <= self.block
        if self.slow:
            if back:
                self._go_round(target)
            self.line(f"if ({target}u < next) goto B{target};")
            self.line(f"pend[{target}] |= m; goto dispatch;")
            return
        if back:
            self._go_round(target)
        self.line(f"goto B{target};")

    def _go_round(self, header: int) -> None:
        """The back edge of a loop."""
        site = self.layout.site(self._end_loc(), "LOOP", 0, 0)
        waits = header in self.layout.waiting
        if waits:
            inside = "~0u"
            if not self.function.entry:
                inside = f"m | rt_pending(pend, {len(self.graph.blocks)})" if self.slow else "m"
            self.line(f"if (UNLIKELY(--w->fuel % WARP_PATIENCE == 0)) rt_wait(w, {site}, {inside});")
        else:
            self.line(f"if (UNLIKELY(--w->fuel == 0)) rt_poll(w, {site});")
        if waits and self.slow:
            self.line(
                f"if (UNLIKELY(--apart.patience == 0)) {{ apart.patience = PATIENCE; apart.waiting |= m; apart.waited |= m; pend[{header}] |= m; goto dispatch; }}"
            )

    def _end_loc(self) -> Loc:
        block = self.graph.blocks[self.block]
        if isinstance(block.end, Branch | Switch):
            return block.end.loc
        return block.instrs[-1].loc if block.instrs else self.function.loc

    def _end_web(self, block: Block) -> int:
        return next(iter(self.values.web_at_end[block.number].values()))

    def _is_leave(self, number: int) -> bool:
        block = self.graph.blocks[number]
        return isinstance(block.end, Leave) and not block.instrs

    def _leave(self, end: Leave) -> None:
        if end.exits or self.function.entry:
            self.line("lanes_exit(w, m);")
        if self.slow:
            if end.exits and not self.function.entry:
                self.line("exited |= m;")
            self.line("goto dispatch;")
        elif self.function.entry:
            self.line("return RETURN_;")
        else:
            self.line("left_exited |= m; return LEFT_;" if end.exits else "return LEFT_;")

    def _terminate(self, block: Block) -> None:
        end = block.end
        if isinstance(end, Leave):
            self._leave(end)
        elif isinstance(end, Goto):
            self._goto(end.target)
        elif isinstance(end, Switch):
            self._switch(block, end)
        elif end.taken == end.fallthrough:
            self._goto(end.taken)
        else:
            web = self._end_web(block)
            name = self.cell(web)
            p = f"(~{name})" if end.condition.negated else name
            if self.web_shape(web).kind is Kind.UNIFORM:
                self.line(f"if ({p}) {{")
                self._goto(end.taken)
                self.line("}")
                self._goto(end.fallthrough)
            else:
                self._parting(block, end, p)

    def _parting(self, block: Block, end: Branch, p: str) -> None:
        """A branch on a condition that lanes may disagree about."""
        self.line(f"const u32 go = {p} & m;")
        if self.layout.counting:
            self.layout.counting.parting(self, block)
        self.line("if (go == m) {")
        self._goto(end.taken)
        self.line("} else if (go == 0) {")
        self._goto(end.fallthrough)
        self.line("}")
        if self.slow:
            first, second = sorted((end.taken, end.fallthrough))
            a, b = ("go", "m & ~go") if end.taken == first else ("m & ~go", "go")
            # The higher-numbered side waits; the lower may go on at once unless others are due before it.
            self.line(f"{{ const u32 ma = {a}, mb = {b};")
            self.line(f"pend[{second}] |= mb; if ({second}u < next) next = {second};")
            self.line("m = ma;")
            if first <= self.block:
                self._go_round(first)
            self.line(f"if ({first}u < next) goto B{first};")
            self.line(f"pend[{first}] |= m; goto dispatch; }}")
            return
        sides = {end.taken: "go", end.fallthrough: "m & ~go"}
        for gone, stay in ((end.taken, end.fallthrough), (end.fallthrough, end.taken)):
            leaves = self.graph.blocks[gone].end
            if self._is_leave(gone) and isinstance(leaves, Leave) and (self.function.entry or not leaves.exits):
                if self.layout.counting:
                    self.layout.counting.enter(self, self.graph.blocks[gone], sides[gone])
                if self.function.entry:
                    self.line(f"lanes_exit(w, {sides[gone]});")
                self.line(f"m = {sides[stay]};")
                self._goto(stay)
                return
        pending = " ".join(f"pend[{number}] = {mask};" for number, mask in sides.items())
        self._run_apart(block, pending, f"{min(sides)}u")

    def _leave_text(self) -> str:
        return "return RETURN_;" if self.function.entry else "return LEFT_;"

    def _leave_after_slow(self) -> None:
        self.line(self._leave_text())

    def _call_slow(self, start: str, first: str, stop: int) -> None:
        """Runs the slow form, from the blocks that `start` enters into `pend` and of which `first` is the lowest, until
        all lanes are at `stop` (-1: until all have left)."""
        self.line(f"{{ u32 pend[{len(self.graph.blocks) + 1}]; memset(pend, 0, sizeof pend);")
        self.line(start)
        extra = "" if self.function.entry else ", prm, &left_exited"
        self.line(f"m = {self.layout.symbol}_slow(w, F, pend, {first}, {stop}{extra}, local_base); }}")

    def _switch(self, block: Block, end: Switch) -> None:
        web = self._end_web(block)
        if self.web_shape(web).kind is Kind.UNIFORM:
            self.line(f"switch ({self.cell(web)}) {{")
            for i, target in enumerate(end.targets):
                self.line(f"{'default' if i == len(end.targets) - 1 else f'case {i}'}: {{")
                self._goto(target)
                self.line("}")
            self.line("}")
            return
        # Lanes choose their own ways.
        kept = self.declared(self.values.register[web])
        self.line("u32 index[32] __attribute__((aligned(64)));")
        for i in self.pieces("u32"):
            self.line(f"*(VU *)&index[{i * self.lanes}] = {self.web_piece(web, i) if kept == 'u32' else '0'};")
        if self.layout.counting:
            self.layout.counting.switch(self, block)
        self.line(f"static const u16 to[] = {{{', '.join(map(str, end.targets))}}};")
        if self.slow:
            self.line("next = choose_blocks(pend, next, m, index, to); goto dispatch;")
            return
        self._run_apart(block, "const u32 first = choose_blocks(pend, ~0u, m, index, to);", "first")

    def _slow_barrier(self, instr: Instr, block: Block) -> None:
        """Lanes of a divided warp arrive: they wait until the others have arrived, or have all left."""
        self.instr = instr
        end = block.end
        assert isinstance(end, Goto)
        if "red" in instr.mods:
            self.line(
                f"if (m != w->live) rt_fault(w, {self.site('BARRIER')}, lowest_lane(m), 719, "
                '"a barrier with a reduction (__syncthreads_count and its like) that only some threads of a warp reach");'
            )
            self.write(instr)
            self._goto(end.target)
            return
        number, threads = barrier_operands(self, instr)
        self.line(f"rt_divided_barrier(w, {self.site('BARRIER')}, m);")
        self.line(f"wait_at(waits, {end.target}, m, {number}, {threads}); waiting |= m;")
        self.line(f"wait_site = {self.site('BARRIER')}; goto dispatch;")
