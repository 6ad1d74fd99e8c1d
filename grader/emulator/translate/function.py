"""Writes one form (linear, general or slow) of one PTX function as C. See runtime/warp.h for what the forms are."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from grader.emulator.analysis.cfg import Block, Branch, Goto, Graph, Leave, Switch, is_barrier
from grader.emulator.analysis.effects import CARRY, is_special
from grader.emulator.analysis.shapes import UNIFORM, Shape, Values
from grader.emulator.ptx import Function, Imm, Instr, Operand, Reg, Sym
from grader.emulator.ptx.model import Loc
from grader.emulator.translate.refusal import Refused
from grader.emulator.translate.types import BITS, FORMS, storage

Expression = Callable[..., str]


@dataclass
class Layout:
    """What all forms of a function share."""

    function: Function
    symbol: str  # C name stem
    shared: dict[str, int]  # shared variable → offset in the block's shared memory
    local: dict[str, int]  # local variable → offset in the frame's local memory
    local_bytes: int
    params: dict[str, int]  # formal parameter → byte offset (entries) or index (functions)
    callees: dict[str, str]  # PTX function name → C name stem
    globals: dict[str, str]  # module variable or function → C expression of its address
    site: Callable[[Loc, str, int, int], int]
    warp_lanes: int  # W of runtime/warp.h
    watched: bool = False  # every access to shared and global memory goes through the runtime, which watches it
    guards: set[int] = field(default_factory=set)


Handler = Callable[["Writer", Instr], None]
HANDLERS: dict[str, Handler] = {}


def handles(*ops: str) -> Callable[[Handler], Handler]:
    """Registers the translation of instructions by their first word."""

    def register(handler: Handler) -> Handler:
        for op in ops:
            HANDLERS[op] = handler
        return handler

    return register


class Writer:
    """State while one form is written. Instruction families add methods' worth of code through HANDLERS."""

    def __init__(self, layout: Layout, graph: Graph, values: Values, form: str, frame_shapes: list[Shape]) -> None:
        self.layout, self.graph, self.values, self.form = layout, graph, values, form
        self.function = layout.function
        self.slow = form == "slow"
        self.frame_shapes = frame_shapes
        self.lines: list[str] = []
        self.used: set[int] = set()
        self.mask = "m"  # lanes for memory operations of the instruction at hand
        self.blend: str | None = None  # lanes whose registers change, or None for all
        self.lanes = layout.warp_lanes
        self.temp = 0
        self.instr: Instr | None = None
        self.block = 0

    # ---- text ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        self.lines.append(text)

    def fresh(self, stem: str = "t") -> str:
        self.temp += 1
        return f"{stem}{self.temp}"

    def pieces(self, t: str) -> range:
        count = 32 // self.lanes
        return range(count * 2 if FORMS[t].wide else count)

    def site(self, kind: str, size: int = 0, order: int = 0) -> int:
        assert self.instr is not None
        return self.layout.site(self.instr.loc, kind, size, order)

    def refuse(self, what: str | None = None, advice: str | None = None) -> Refused:
        assert self.instr is not None
        what = what or f"the PTX instruction {self.instr.text}"
        return Refused(what, self.instr.loc, advice) if advice else Refused(what, self.instr.loc)

    # ---- variables ------------------------------------------------------------------------------------------------

    def declared(self, name: str) -> str:
        kind = "pred" if name == CARRY else self.function.registers.get(name)
        if kind is None:
            raise self.refuse(f"the register {name}, which is not declared,")
        return storage(kind)

    def var(self, web: int) -> str:
        name = re.sub(r"\W", "_", self.values.register[web].lstrip("%"))
        name = f"{name}_w{web}"
        if self.slow and not self.values.local[web]:
            return f"F->{name}"
        self.used.add(web)
        return name

    def web_shape(self, web: int) -> Shape:
        return self.values.shape[web]

    def web(self, operand: Operand) -> int:
        assert isinstance(operand, Reg) and self.instr is not None
        return self.values.of_read(self.instr, operand.name)

    def shape(self, operand: Operand) -> Shape:
        if isinstance(operand, Imm | Sym):
            return UNIFORM
        assert isinstance(operand, Reg)
        if is_special(operand.name):
            return self._special_shape(operand.name)
        return self.web_shape(self.web(operand))

    def uniform(self, operand: Operand) -> bool:
        return self.shape(operand).kind == 0

    # ---- reading operands -----------------------------------------------------------------------------------------

    def s(self, operand: Operand, t: str) -> str:
        """A uniform operand as a C scalar of type `t`."""
        form = FORMS[t]
        if isinstance(operand, Imm):
            return self._literal(operand, t)
        if isinstance(operand, Sym):
            return f"(({form.scalar})({self.address_of(operand)}))"
        assert isinstance(operand, Reg)
        if is_special(operand.name):
            return f"(({form.scalar})({self._special_scalar(operand.name)}))"
        web = self.web(operand)
        kept = self.declared(operand.name)
        return self._convert_scalar(self.var(web), kept, t)

    def _convert_scalar(self, text: str, kept: str, t: str) -> str:
        if kept == "pred":
            raise self.refuse()
        form = FORMS[t]
        if kept == "f32" and t == "f32":
            return text
        if kept == "f64" and t == "f64":
            return text
        if kept == "f32":
            text = f"f2u({text})"
        elif kept == "f64":
            text = f"d2q({text})"
        if t == "f32":
            return f"u2f({text})"
        if t == "f64":
            return f"q2d({text})"
        if BITS[t] == 16 and BITS[kept] >= 16:
            return f"((i32)(i16){text})" if t == "s16" else f"((u32)(u16){text})"
        if BITS[t] == 8:
            return f"((i32)(i8){text})" if t == "s8" else f"((u32)(u8){text})"
        return f"(({form.scalar}){text})"

    def _literal(self, imm: Imm, t: str) -> str:
        if t == "f32":
            if imm.width == 64:
                return f"((float)q2d(0x{imm.value:x}ull))"
            return f"u2f(0x{imm.value & 0xFFFFFFFF:x}u)" if imm.width else f"((float){imm.value})"
        if t == "f64":
            if imm.width == 32:
                return f"((double)u2f(0x{imm.value:x}u))"
            return f"q2d(0x{imm.value & (1 << 64) - 1:x}ull)" if imm.width else f"((double){imm.value})"
        bits = BITS[t]
        value = imm.value & ((1 << bits) - 1)
        if t[0] == "s" and value >> (bits - 1):
            value -= 1 << bits
        if bits == 64:
            return f"((i64)0x{value & (1 << 64) - 1:x}ull)" if t[0] == "s" else f"0x{value:x}ull"
        return f"((i32)0x{value & 0xFFFFFFFF:x}u)" if t[0] == "s" else f"0x{value:x}u"

    def address_of(self, symbol: Sym) -> str:
        name, layout = symbol.name, self.layout
        if name == "WARP_SZ":
            return "32u"
        if name in layout.shared:
            return f"{layout.shared[name] + symbol.offset}u"
        if name in layout.local:
            return f"(local_base + {layout.local[name] + symbol.offset}u)"
        if name in layout.params and self.function.entry:
            return f"(PARAM_WINDOW + {layout.params[name] + symbol.offset})"
        if name in layout.globals:
            return f"({layout.globals[name]} + {symbol.offset})"
        raise self.refuse(f"the address of {name}")

    def base(self, operand: Operand, t: str) -> str:
        """Lane 0's value of a uniform or affine operand (were lane 0 and all others live)."""
        if isinstance(operand, Reg) and not is_special(operand.name):
            web = self.web(operand)
            if self.web_shape(web).kind == 1:
                return f"(({FORMS[t].scalar}){self.var(web)})"
        elif isinstance(operand, Reg) and self._special_shape(operand.name).kind == 1:
            return "0u" if operand.name == "%laneid" else "w->tid0[0]"
        return self.s(operand, t)

    def stride(self, operand: Operand) -> str:
        shape = self.shape(operand)
        if shape.kind == 0:
            return "0"
        if shape.stride is not None:
            return f"({shape.stride}ll)"
        return f"{self.var(self.web(operand))}_s"

    def v(self, operand: Operand, t: str, i: int) -> str:
        """Piece `i` of an operand as a C vector of type `t`."""
        form = FORMS[t]
        shape = self.shape(operand)
        if shape.kind == 0:
            return f"{form.broadcast}({self.s(operand, t)})"
        assert isinstance(operand, Reg)
        if is_special(operand.name):
            return f"(({form.vector}){self._special_vector(operand.name, i)})"
        kept = self.declared(operand.name)
        if FORMS[kept].wide and not form.wide:  # a 64-bit register read by a narrower instruction
            text = f"narrow_q({self.piece(operand, 2 * i)}, {self.piece(operand, 2 * i + 1)})"
        elif form.wide and not FORMS[kept].wide:
            raise self.refuse()
        else:
            text = self.piece(operand, i)
        if t == "s16":
            return f"((VI)({text}) << 16 >> 16)"
        if t in ("u16", "b16") and BITS[self.function.registers[operand.name]] > 16:
            return f"((VU)({text}) & 0xffffu)"
        if t == "s8":
            return f"((VI)({text}) << 24 >> 24)"
        if t in ("u8", "b8"):
            return f"((VU)({text}) & 0xffu)"
        return f"(({form.vector}){text})"

    def piece(self, operand: Reg, i: int) -> str:
        """Piece `i` of a register as it is kept."""
        web = self.web(operand)
        return self.web_piece(web, i)

    def web_piece(self, web: int, i: int) -> str:
        kept = self.declared(self.values.register[web])
        shape = self.web_shape(web)
        name = self.var(web)
        if shape.kind == 0:
            return f"{FORMS[kept].broadcast}({name})"
        if shape.kind == 1:
            stride = f"{name}_s" if shape.stride is None else f"({shape.stride})"
            if FORMS[kept].wide:
                return f"(BQ({name}) + IOTAQ({i}) * BQ((u64)(i64){stride}))"
            return f"(BU({name}) + IOTA({i}) * BU((u32){stride}))"
        return f"{name}_{i}"

    def pred(self, operand: Operand) -> str:
        """A predicate operand as a lane mask."""
        if isinstance(operand, Imm):
            return "~0u" if operand.value else "0u"
        assert isinstance(operand, Reg)
        name = self.var(self.web(operand))
        return f"(~{name})" if operand.negated else name

    # ---- special registers ----------------------------------------------------------------------------------------

    def _special_shape(self, name: str) -> Shape:
        from grader.emulator.translate.shape_rules import ShapeRules

        rules = ShapeRules(linear=self.form == "linear", per_lane_params=frozenset(), guards=False)
        return rules._special(name)

    def _special_scalar(self, name: str) -> str:
        head, _, axis = name.partition(".")
        index = "xyz".find(axis) if axis else 0
        simple = {
            "%ntid": f"w->ntid[{index}]", "%ctaid": f"w->ctaid[{index}]", "%nctaid": f"w->nctaid[{index}]",
            "%tid": f"w->tid0[{index}]", "%warpid": "w->index",
            "%nwarpid": "((w->ntid[0] * w->ntid[1] * w->ntid[2] + 31) / 32)", "%smid": "w->smid", "%nsmid": "108u",
            "%gridid": "w->grid_id", "%dynamic_smem_size": "w->dynamic_shared", "%total_smem_size": "w->shared_size",
            "%aggr_smem_size": "w->shared_size", "%envreg1": "w->environment[0]", "%envreg2": "w->environment[1]",
        }  # fmt: skip
        if head in simple:
            return simple[head]
        raise self.refuse(f"the special register {name}", "do without it or run on a GPU (--engine cuda)")

    def _special_vector(self, name: str, i: int) -> str:
        head, _, axis = name.partition(".")
        if name == "%laneid":
            return f"IOTA({i})"
        if head == "%tid":
            if self.form == "linear" and axis == "x":
                return f"(BU(w->tid0[0]) + IOTA({i}))"
            return f"(*(const VU *)&w->tid[{'xyz'.index(axis)}][{i * self.lanes}])"
        masks = {
            "%lanemask_eq": "(BU(1) << IOTA({i}))", "%lanemask_lt": "((BU(1) << IOTA({i})) - BU(1))",
            "%lanemask_le": "((BU(2) << IOTA({i})) - BU(1))", "%lanemask_gt": "~((BU(2) << IOTA({i})) - BU(1))",
            "%lanemask_ge": "~((BU(1) << IOTA({i})) - BU(1))",
        }  # fmt: skip
        if head in masks:
            return masks[head].replace("{i}", str(i))
        clocks = {
            "%clock": "BU((u32)rt_clock())", "%clock_hi": "BU((u32)(rt_clock() >> 32))", "%clock64": "BQ(rt_clock())",
            "%globaltimer": "BQ(rt_nanoseconds())", "%globaltimer_lo": "BU((u32)rt_nanoseconds())",
            "%globaltimer_hi": "BU((u32)(rt_nanoseconds() >> 32))",
        }  # fmt: skip
        if head in clocks:
            return clocks[head]
        raise self.refuse(f"the special register {name}", "do without it or run on a GPU (--engine cuda)")

    # ---- writing results --------------------------------------------------------------------------------------------

    def result_web(self, operand: Operand) -> int:
        assert isinstance(operand, Reg) and self.instr is not None
        return self.values.of_write(self.instr, operand.name)

    def result_shape(self, operand: Operand) -> Shape:
        return self.web_shape(self.result_web(operand))

    def needs_blend(self, web: int) -> bool:
        return self.blend is not None and not (self.values.local[web] and self.blend == "m")

    def put_scalar(self, operand: Operand, t: str, text: str, stride: str = "0") -> None:
        """Stores a uniform value (or an affine base with its stride) into the register."""
        if isinstance(operand, Reg) and operand.name == "_":
            return
        web = self.result_web(operand)
        shape = self.web_shape(web)
        kept = self.declared(self.values.register[web])
        text = self._store_scalar(text, t, kept)
        if shape.kind == 2:
            for i in self.pieces(kept):
                self._put_piece(web, kept, i, f"{FORMS[kept].broadcast}({text})")
            return
        name = self.var(web)
        self.line(f"{name} = {text};")
        if shape.kind == 1 and shape.stride is None:
            self.line(f"{name}_s = {stride};")

    def _store_scalar(self, text: str, t: str, kept: str) -> str:
        if t in ("f32", "f64") and t == kept:
            return text
        if t == "f32":
            text = f"f2u({text})"
        elif t == "f64":
            text = f"d2q({text})"
        if BITS[t] == 16 and not FORMS[kept].wide:
            text = f"(u16)({text})"
        elif BITS[t] == 8 and not FORMS[kept].wide:
            text = f"(u8)({text})"
        if kept == "f32":
            return f"u2f({text})"
        if kept == "f64":
            return f"q2d({text})"
        return f"({FORMS[kept].scalar})({text})"

    def put(self, operand: Operand, t: str, piece: Callable[[int], str]) -> None:
        """Stores a vector value, given piece by piece as C vectors of type `t`, into the register."""
        if isinstance(operand, Reg) and operand.name == "_":
            return
        web = self.result_web(operand)
        assert self.web_shape(web).kind == 2, (self.instr, str(self.web_shape(web)))
        kept = self.declared(self.values.register[web])
        if FORMS[kept].wide != FORMS[t].wide:
            if FORMS[kept].wide:  # a narrow value into a 64-bit register: ld, cvt
                signed = t[0] == "s"
                temps = [self.fresh() for _ in self.pieces(t)]
                for i, name in enumerate(temps):
                    self.line(f"{FORMS[t].vector} {name} = {piece(i)};")
                for i in self.pieces(kept):
                    f = ("widen_i" if signed else "widen_u") + ("_hi" if i % 2 else "_lo")
                    self._put_piece(web, kept, i, f"(VQ){f}({temps[i // 2]})")
                return
            raise self.refuse()
        if self.form != "x" and len(self.pieces(t)) > 1 and self.blend is not None:
            temps = [self.fresh() for _ in self.pieces(t)]
            for i, name in enumerate(temps):
                self.line(f"{FORMS[t].vector} {name} = {piece(i)};")
            for i, name in enumerate(temps):
                self._put_piece(web, kept, i, self._trim(name, t, kept))
            return
        # A piece may read the register it replaces (add r, r, 1): same piece only, so in-place is safe unless an
        # instruction mixes pieces, which then goes through temporaries of its own.
        for i in self.pieces(t):
            self._put_piece(web, kept, i, self._trim(piece(i), t, kept))

    def _trim(self, text: str, t: str, kept: str) -> str:
        if BITS[t] == 16 and t not in ("f16x2",):
            return f"((VU)({text}) & 0xffffu)"
        if BITS[t] == 8:
            return f"((VU)({text}) & 0xffu)"
        return text

    def _put_piece(self, web: int, kept: str, i: int, text: str) -> None:
        name = f"{self.var(web)}_{i}"
        form = FORMS[kept]
        text = f"({form.vector})({text})"
        if self.needs_blend(web):
            select = {"VU": "SELU", "VF": "SELF", "VQ": "SELQ", "VD": "SELD"}[form.vector]
            mask = "MKQ" if form.wide else "MK"
            text = f"{select}({mask}({self.blend}, {i}), {text}, {name})"
        self.line(f"{name} = {text};")

    def put_pred(self, operand: Operand, text: str) -> None:
        if isinstance(operand, Reg) and operand.name == "_":
            return
        web = self.result_web(operand)
        name = self.var(web)
        if self.web_shape(web).kind == 2 and self.needs_blend(web):
            self.line(f"{name} = (({text}) & {self.blend}) | ({name} & ~{self.blend});")
        else:
            self.line(f"{name} = {text};")

    def op(self, instr: Instr, result_type: str, operands: list[tuple[Operand, str]], make: Expression) -> None:
        """An instruction whose result depends lane by lane on its operands. `make(suffix, *texts)` gives the C
        expression; suffix "s" asks for scalars, "v" for vectors."""
        d = instr.operands[0]
        if isinstance(d, Reg) and d.name == "_":
            return
        shape = self.result_shape(d)
        if shape.kind != 2 or all(self.uniform(o) for o, _ in operands):
            if all(self.uniform(o) for o, _ in operands):
                self.put_scalar(d, result_type, make("s", *(self.s(o, t) for o, t in operands)))
                return
            raise AssertionError(f"no affine form for {instr}")
        self.put(d, result_type, lambda i: make("v", *(self.v(o, t, i) for o, t in operands)))

    # ---- instructions and blocks --------------------------------------------------------------------------------------

    def write(self, instr: Instr) -> None:
        self.instr = instr
        self.mask = "m"
        self.blend = "m" if self.slow else None
        guard = instr.guard
        closing = ""
        if guard is not None:
            p = self.pred(guard)
            if self.web_shape(self.web(guard)).kind == 0:
                self.line(f"if ({p}) {{")
                closing = "}"
            else:
                g = self.fresh("g")
                self.line(f"const u32 {g} = {p} & m;" if instr.op not in ("call",) else f"u32 {g} = {p} & m;")
                self.mask = g
                self.blend = g
                if instr.op in ("ld", "st", "atom", "red", "call", "cp", "trap"):
                    self.line(f"if ({g}) {{")
                    closing = "}"
        handler = HANDLERS.get(instr.op)
        if handler is None:
            raise self.refuse()
        start = len(self.lines)
        self.line("{")
        handler(self, instr)
        if len(self.lines) == start + 1:
            self.lines.pop()
        else:
            self.line("}")
        if closing:
            self.line(closing)

    def write_block(self, block: Block) -> None:
        self.block = block.number
        self.line(f"B{block.number}: ;")
        self.line("{")
        local_start = len(self.lines)
        outer_used = self.used
        if self.slow:
            self.used = set()
        if self.values is not None and id_in(block, self.layout.guards) and self.form == "linear":
            self._guard_entry(block)
        for instr in block.instrs:
            if is_barrier(instr) and self.slow:
                self._slow_barrier(instr, block)
                break
            self.write(instr)
        else:
            self._terminate(block)
        if self.slow:
            declarations = [d for web in sorted(self.used) for d in self._declare(web)]
            self.lines[local_start:local_start] = declarations
            self.used = outer_used
        self.line("}")

    def _guard_entry(self, block: Block) -> None:
        """Leaves the linear form for good when an affine index would wrap around in 32 bits."""
        instr = block.instrs[0]
        self.instr = instr
        d = instr.operands[0]
        if self.result_shape(d).kind != 1 or instr.guard is not None:
            return
        checks = []
        signed = instr.mods[-1] == "s32"
        for operand in instr.operands[1:3] if instr.op != "cvt" else instr.operands[1:]:
            if self.shape(operand).kind == 1:
                f = "wraps_i" if signed else "wraps_u"
                checks.append(f"{f}({self.base(operand, 'u32')}, {self.stride(operand)})")
        if not checks:
            return
        self.line(f"if (UNLIKELY({' || '.join(checks)})) {{")
        self._spill(self.values.live_in[block.number])
        self._call_slow([(block.number, "m")], -1)
        self._leave_after_slow()
        self.line("}")

    # ---- frame traffic ------------------------------------------------------------------------------------------------

    def _spill(self, webs: set[int]) -> None:
        for web in sorted(webs):
            if self.values.local[web]:
                continue
            field_name = f"F->{re.sub(chr(92) + 'W', '_', self.values.register[web].lstrip('%'))}_w{web}"
            kept = self.declared(self.values.register[web])
            if kept == "pred" or self.frame_shapes[web].kind == 0:
                self.line(f"{field_name} = {self.var(web)};")
                continue
            if self.frame_shapes[web].kind == 1:
                self.line(f"{field_name} = {self.var(web)};")
                if self.frame_shapes[web].stride is None:
                    shape = self.web_shape(web)
                    stride = (
                        "0"
                        if shape.kind == 0
                        else str(shape.stride)
                        if shape.stride is not None
                        else f"{self.var(web)}_s"
                    )
                    self.line(f"{field_name}_s = {stride};")
                continue
            for i in self.pieces(kept):
                self.line(f"{field_name}_{i} = {self.web_piece(web, i)};")

    def _reload(self, webs: set[int], changed: set[int]) -> None:
        for web in sorted(webs & changed):
            if self.values.local[web]:
                continue
            field_name = f"F->{re.sub(chr(92) + 'W', '_', self.values.register[web].lstrip('%'))}_w{web}"
            kept = self.declared(self.values.register[web])
            shape, kept_shape = self.web_shape(web), self.frame_shapes[web]
            name = self.var(web)
            if kept == "pred" or kept_shape.kind == 0:
                self.line(f"{name} = {field_name};")
            elif shape.kind == 2:
                for i in self.pieces(kept):
                    self.line(f"{name}_{i} = {field_name}_{i};")
            elif kept_shape.kind == 1:
                self.line(f"{name} = {field_name};")
                if shape.stride is None:
                    self.line(
                        f"{name}_s = {field_name}_s;"
                        if kept_shape.stride is None
                        else f"{name}_s = {kept_shape.stride};"
                    )
            else:  # a vector in the frame that this form knows to be even: any two neighbouring live lanes tell
                lanes = f"((const {FORMS[kept].scalar} *)&{field_name}_0)"
                if shape.kind == 0:
                    self.line(f"{name} = {lanes}[__builtin_ctz(m)];")
                elif shape.stride is not None:
                    self.line(
                        f"{name} = {lanes}[__builtin_ctz(m)] - (u32)__builtin_ctz(m) * ({FORMS[kept].scalar})({shape.stride}ll);"
                    )
                else:
                    t = FORMS[kept].scalar
                    self.line(f"affine_from_lanes_{t}((const {t} *)&{field_name}_0, m, &{name}, &{name}_s);")

    # ---- control flow ---------------------------------------------------------------------------------------------------

    def region(self, block: Block) -> set[int]:
        """Blocks that lanes may run between a branch at the end of `block` and its post-dominator."""
        stop = self.graph.postdominator[block.number]
        seen: set[int] = set()
        work = list(block.successors)
        while work:
            node = work.pop()
            if node in seen or node in (stop, self.graph.exit):
                continue
            seen.add(node)
            work.extend(self.graph.blocks[node].successors)
        return seen

    def _goto(self, target: int) -> None:
        back = target <= self.block
        if self.slow:
            if back:
                self._poll()
            self.line(f"if ({target}u < next) goto B{target};")
            self.line(f"pend[{target}] |= m; goto dispatch;")
            return
        if back:
            self._poll()
        self.line(f"goto B{target};")

    def _poll(self) -> None:
        loc = self._end_loc()
        site = self.layout.site(loc, "LOOP", 0, 0)
        self.line(f"if (UNLIKELY(--w->fuel == 0)) rt_poll(w, {site});")

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
            name = self.var(web)
            p = f"(~{name})" if end.condition.negated else name
            if self.web_shape(web).kind == 0:
                self.line(f"if ({p}) {{")
                self._goto(end.taken)
                self.line("}")
                self._goto(end.fallthrough)
            else:
                self._parting(block, end, p)

    def _parting(self, block: Block, end: Branch, p: str) -> None:
        """A branch on a condition that lanes may disagree about."""
        self.line(f"const u32 go = {p} & m;")
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
                self._poll()
            self.line(f"if ({first}u < next) goto B{first};")
            self.line(f"pend[{first}] |= m; goto dispatch; }}")
            return
        sides = {end.taken: "go", end.fallthrough: "m & ~go"}
        for gone, stay in ((end.taken, end.fallthrough), (end.fallthrough, end.taken)):
            leaves = self.graph.blocks[gone].end
            if self._is_leave(gone) and isinstance(leaves, Leave) and (self.function.entry or not leaves.exits):
                if self.function.entry:
                    self.line(f"lanes_exit(w, {sides[gone]});")
                self.line(f"m = {sides[stay]};")
                self._goto(stay)
                return
        stop = self.graph.postdominator[block.number]
        region = self.region(block)
        live: set[int] = set()
        for s in block.successors:
            live |= self.values.live_in[s]
        after = self.values.live_in[stop] if stop < self.graph.exit else set()
        self._spill(live | after)
        self._call_slow(list(sides.items()), stop if stop < self.graph.exit else -1)
        if stop >= self.graph.exit:
            self._leave_after_slow()
            return
        if self.function.entry:
            self.line("if (m == 0) return RETURN_;")
        else:
            self.line("if (m == 0) return LEFT_;")
        changed = {self.values.of_write(i, n) for b in region for i in self.graph.blocks[b].instrs for n in _written(i)}
        self._reload(after, changed)
        self._goto(stop)

    def _leave_after_slow(self) -> None:
        self.line("return RETURN_;" if self.function.entry else "return LEFT_;")

    def _call_slow(self, pending: list[tuple[int, str]], stop: int) -> None:
        """Runs the slow form from the given blocks until all lanes are at `stop` (-1: until all have left)."""
        self.line(f"{{ u32 pend[{len(self.graph.blocks) + 1}]; memset(pend, 0, sizeof pend);")
        for number, mask in pending:
            self.line(f"pend[{number}] = {mask};")
        args = "" if self.function.entry else ", prm"
        extra = "" if self.function.entry else ", &left_exited"
        self.line(
            f"m = {self.layout.symbol}_slow(w, F, pend, {min(n for n, _ in pending)}u, {stop}{args}{extra}, local_base); }}"
        )

    def _switch(self, block: Block, end: Switch) -> None:
        web = self._end_web(block)
        name = self.var(web)
        if self.web_shape(web).kind == 0:
            self.line(f"switch ({name}) {{")
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
        if self.slow:
            self.line("for (u32 l = 0; l < 32; l++) if (m >> l & 1) {")
            self.line(f"static const u16 to[] = {{{', '.join(map(str, end.targets))}}};")
            self.line("u32 b = to[index[l]]; pend[b] |= 1u << l; if (b < next) next = b; }")
            self.line("goto dispatch;")
            return
        stop = self.graph.postdominator[block.number]
        live: set[int] = set()
        for s in block.successors:
            live |= self.values.live_in[s]
        after = self.values.live_in[stop] if stop < self.graph.exit else set()
        self._spill(live | after)
        self.line(f"{{ u32 pend[{len(self.graph.blocks) + 1}]; memset(pend, 0, sizeof pend); u32 first = ~0u;")
        self.line(f"static const u16 to[] = {{{', '.join(map(str, end.targets))}}};")
        self.line(
            "for (u32 l = 0; l < 32; l++) if (m >> l & 1) { u32 b = to[index[l]]; pend[b] |= 1u << l; if (b < first) first = b; }"
        )
        args = "" if self.function.entry else ", prm"
        extra = "" if self.function.entry else ", &left_exited"
        self.line(
            f"m = {self.layout.symbol}_slow(w, F, pend, first, {stop if stop < self.graph.exit else -1}{args}{extra}, local_base); }}"
        )
        if stop >= self.graph.exit:
            self._leave_after_slow()
            return
        self.line("if (m == 0) return RETURN_;" if self.function.entry else "if (m == 0) return LEFT_;")
        changed = {
            self.values.of_write(i, n)
            for b in self.region(block)
            for i in self.graph.blocks[b].instrs
            for n in _written(i)
        }
        self._reload(after, changed)
        self._goto(stop)

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
        from grader.emulator.translate.barriers import barrier_operands

        number, threads = barrier_operands(self, instr)
        self.line(f"rt_divided_barrier(w, {self.site('BARRIER')}, m);")
        self.line(
            f"wait_at[{end.target}] |= m; wait_id[{end.target}] = {number}; wait_threads[{end.target}] = {threads}; waiting |= m;"
        )
        self.line(f"wait_site = {self.site('BARRIER')}; goto dispatch;")

    # ---- declarations -----------------------------------------------------------------------------------------------------

    def _declare(self, web: int) -> list[str]:
        kept = self.declared(self.values.register[web])
        name = re.sub(r"\W", "_", self.values.register[web].lstrip("%")) + f"_w{web}"
        return declaration(name, kept, self.web_shape(web), 32 // self.lanes)


def declaration(name: str, kept: str, shape: Shape, pieces: int) -> list[str]:
    """C declarations of a register's variables."""
    if kept == "pred":
        return [f"u32 {name};"]
    form = FORMS[kept]
    if shape.kind == 0:
        return [f"{form.scalar} {name};"]
    if shape.kind == 1:
        return [f"{form.scalar} {name};"] + ([f"i64 {name}_s;"] if shape.stride is None else [])
    count = pieces * 2 if form.wide else pieces
    return [f"{form.vector} {', '.join(f'{name}_{i}' for i in range(count))};"]


def id_in(block: Block, ids: set[int]) -> bool:
    return bool(block.instrs) and id(block.instrs[0]) in ids


def _written(instr: Instr) -> tuple[str, ...]:
    from grader.emulator.analysis.effects import written

    return written(instr)
