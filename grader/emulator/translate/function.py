"""Write the instructions of one form of a PTX function as C: operands, results, and the dispatch to each family's code.

runtime/warp.h explains the forms, control.py the code between blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from grader.emulator.analysis.cfg import Graph
from grader.emulator.analysis.effects import CARRY, is_special
from grader.emulator.analysis.shapes import UNIFORM, Kind, Shape, Values
from grader.emulator.analysis.waiting import Callees
from grader.emulator.ptx import Function, Imm, Instr, Operand, Reg, Sym
from grader.emulator.ptx.model import Loc
from grader.emulator.translate.counting import FunctionCounting
from grader.emulator.translate.frame import Frame
from grader.emulator.translate.lacking import lacking_instruction
from grader.emulator.translate.refusal import Refused
from grader.emulator.translate.template import Code, Hole, Recipe, Signature, fill, number_hole, offset_hole
from grader.emulator.translate.types import BITS, FORMS, half_of, storage

Expression = Callable[..., str]


@dataclass
class Layout:
    """The data that all forms of a function share."""

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
    architecture: int  # 80 for sm_80
    counting: FunctionCounting | None = None
    watched: bool = False  # every access to shared and global memory goes through the runtime, which watches it
    guards: set[int] = field(default_factory=set)
    callees_do: Callees = field(default_factory=Callees)
    waiting: frozenset[int] = frozenset()  # headers of loops in which lanes may wait for others of their warp
    meetings: frozenset[int] = frozenset()  # where lanes that ran apart meet
    gathers: frozenset[int] = frozenset()  # of these, warp functions whose lanes may arrive separately (gather.c)


# Instructions whose text depends only on their operands, the first of which is the result.
_ARITHMETIC = {
    "add", "sub", "mul", "mad", "fma", "mov", "selp", "setp", "and", "or", "xor", "not", "shl", "shr", "neg", "abs",
    "min", "max", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "cvt",
}  # fmt: skip
Handler = Callable[["Writer", Instr], None]
HANDLERS: dict[str, Handler] = {}


def handles(*ops: str) -> Callable[[Handler], Handler]:
    """Register the decorated function as the translation of the instructions that begin with these words."""

    def register(handler: Handler) -> Handler:
        for op in ops:
            HANDLERS[op] = handler
        return handler

    return register


@dataclass(frozen=True, slots=True)
class Row:
    """An instruction that one C function implements: the function's name without its _s or _v suffix, and the types of
    the result and the operands.

    `{t}` stands for the instruction's type, `{0}` and `{1}` for its modifiers, `{a}` and `{b}` for u or s of its types."""

    function: str
    result: str
    operands: str


def write_row(w: Writer, instr: Instr, row: Row) -> None:
    """Write a call of the C function that `row` names for an instruction."""
    words = (*instr.mods, "", "")
    a, b, *_ = (*(t[0] for t in instr.mods.types), "", "")
    name, result, operands = (
        text.format(*words, t=instr.type, a=a, b=b) for text in (row.function, row.result, row.operands)
    )
    typed = list(zip(instr.sources, operands.split(), strict=True))
    w.op(instr, result, typed, lambda s, *x: f"{name}_{s}({', '.join(x)})")


class Writer:
    """The state while one form is written. The instruction families are functions of a writer, found through HANDLERS.

    Registers are in the frame, and instructions become rows of `code`. In a compiled block, registers are C variables,
    and gcc optimises the block's text as a whole.
    """

    def __init__(self, layout: Layout, graph: Graph, values: Values, form: str, frame: Frame, code: Code) -> None:
        self.layout, self.graph, self.values, self.form = layout, graph, values, form
        self.function = layout.function
        self.slow = form == "slow"
        self.gathered = layout.gathers if self.slow else frozenset()
        self.frame, self.code = frame, code
        self.places = frame.threaded(values)
        types, numbered = self.function.registers, code.templates.numbered
        self.facts = [
            numbered((types.get(register), shape, local))
            for register, shape, local in zip(values.register, values.shape, values.local, strict=True)
        ]
        self.in_row = False  # the text being written becomes a row
        self.pinned = False  # the text names something that only this form has
        self.in_variables = False  # the current block is compiled
        self.used: set[int] = set()  # registers that the block uses
        self.lines: list[str] = []
        self.mask = "m"  # lanes for memory operations of the current instruction
        self.blend: str | None = None  # lanes whose registers change, or None for all
        self.lanes = layout.warp_lanes
        self.temp = 0
        self.instr: Instr | None = None
        self.block = 0

    # ---- text ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        if self.in_row:
            self.lines.append(text)
            return
        self.flush()
        self.lines.append(text)

    def flush(self) -> None:
        """Write the call that runs the rows added so far."""
        call = self.code.flush()
        if call is not None:
            self.lines.append(call)

    def pin(self) -> None:
        """Mark the current instruction as using something that only this form has, such as its arguments or a variable
        of its module."""
        self.pinned = True

    def number(self, value: int) -> str:
        """C expression of type int for a number that gcc need not know."""
        if not self.in_row or not -(1 << 31) <= value < 1 << 32:
            return f"({value})"
        return f"((i32){number_hole(value)})"

    def fresh(self, stem: str = "t") -> str:
        self.temp += 1
        return f"{stem}{self.temp}"

    def pieces(self, t: str) -> range:
        count = 32 // self.lanes
        return range(count * 2 if FORMS[t].wide else count)

    def site(self, kind: str, size: int = 0, order: int = 0) -> str:
        assert self.instr is not None
        return self.number(self.layout.site(self.instr.loc, kind, size, order))

    def refuse(self, what: str | None = None, advice: str | None = None) -> Refused:
        assert self.instr is not None
        if what is None and (found := lacking_instruction(self.instr.text)) is not None:
            return Refused(f"{found.what} ({self.instr.text})", self.instr.loc, advice or found.advice)
        what = what or f"the PTX instruction {self.instr.text}"
        return Refused(what, self.instr.loc, advice) if advice else Refused(what, self.instr.loc)

    # ---- variables ------------------------------------------------------------------------------------------------

    def declared(self, name: str) -> str:
        kind = "pred" if name == CARRY else self.function.registers.get(name)
        if kind is None:
            raise self.refuse(f"the register {name}, which is not declared,")
        return storage(kind)

    def cell(self, web: int, part: str = "") -> str:
        """C text for a register: its only value or its base (""), its stride ("_s") or a piece of it ("_0", …)."""
        if not self.in_variables:
            return self._in_frame(web, self.places[web], part)
        self.used.add(web)
        return f"{self.name(web)}{part}"

    def frame_cell(self, web: int, part: str = "") -> str:
        """C text for the place where the slow form looks for a register."""
        return self._in_frame(web, self.frame.places[web], part)

    def name(self, web: int) -> str:
        stem = re.sub(r"\W", "_", self.values.register[web].lstrip("%"))
        return f"{stem}_w{web}"

    def _in_frame(self, web: int, place: int, part: str) -> str:
        kept = self.declared(self.values.register[web])
        base = offset_hole(place) if self.in_row else str(place)
        if part == "_s":
            return f"(*(i64 *)(F + {base} + 8))"
        kind = "u32" if kept == "pred" else FORMS[kept].vector if part else FORMS[kept].scalar
        at = f" + {int(part[1:]) * 4 * self.lanes}" if part else ""
        return f"(*({kind} *)(F + {base}{at}))"

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
        return self.shape(operand).kind is Kind.UNIFORM

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
        return self._convert_scalar(self.cell(web), kept, t)

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
            return f"u2f({self.number(imm.value & 0xFFFFFFFF)})" if imm.width else f"((float){imm.value})"
        if t == "f64":
            if imm.width == 32:
                return f"((double)u2f(0x{imm.value:x}u))"
            return f"q2d(0x{imm.value & (1 << 64) - 1:x}ull)" if imm.width else f"((double){imm.value})"
        bits = BITS[t]
        value = imm.value & ((1 << bits) - 1)
        if t[0] == "s" and value >> (bits - 1):
            value -= 1 << bits
        if bits == 64:
            if self.in_row and -(1 << 31) <= value < 1 << 31:
                return f"(({FORMS[t].scalar}){self.number(value)})"
            return f"((i64)0x{value & (1 << 64) - 1:x}ull)" if t[0] == "s" else f"0x{value:x}ull"
        if self.in_row:
            return f"(({FORMS[t].scalar}){self.number(value)})"
        return f"((i32)0x{value & 0xFFFFFFFF:x}u)" if t[0] == "s" else f"0x{value:x}u"

    def address_of(self, symbol: Sym) -> str:
        name, layout = symbol.name, self.layout
        if name == "WARP_SZ":
            return "32u"
        if name in layout.shared:
            return f"((u32){self.number(layout.shared[name] + symbol.offset)})"
        if name in layout.local:
            return f"(local_base + (u32){self.number(layout.local[name] + symbol.offset)})"
        if name in layout.params and self.function.entry:
            return f"(PARAM_WINDOW + (u64){self.number(layout.params[name] + symbol.offset)})"
        if name in layout.globals:
            self.pin()
            return f"({layout.globals[name]} + {symbol.offset})"
        raise self.refuse(f"the address of {name}")

    def base(self, operand: Operand, t: str) -> str:
        """The value that a uniform or affine operand has, or would have, in lane 0."""
        if isinstance(operand, Reg) and not is_special(operand.name):
            web = self.web(operand)
            if self.web_shape(web).kind is Kind.AFFINE:
                return f"(({FORMS[t].scalar}){self.cell(web)})"
        elif isinstance(operand, Reg) and self._special_shape(operand.name).kind is Kind.AFFINE:
            return "0u" if operand.name == "%laneid" else "w->tid0[0]"
        return self.s(operand, t)

    def stride(self, operand: Operand) -> str:
        shape = self.shape(operand)
        if shape.kind is Kind.UNIFORM:
            return "0"
        if shape.stride is not None:
            return f"({shape.stride}ll)"
        return self.cell(self.web(operand), "_s")

    def v(self, operand: Operand, t: str, i: int) -> str:
        """Piece `i` of an operand as a C vector of type `t`."""
        form = FORMS[t]
        shape = self.shape(operand)
        if shape.kind is Kind.UNIFORM:
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
        """Piece `i` of a register in its stored type."""
        web = self.web(operand)
        return self.web_piece(web, i)

    def web_piece(self, web: int, i: int) -> str:
        kept = self.declared(self.values.register[web])
        shape = self.web_shape(web)
        if shape.kind is Kind.UNIFORM:
            return f"{FORMS[kept].broadcast}({self.cell(web)})"
        if shape.kind is Kind.AFFINE:
            stride = self.cell(web, "_s") if shape.stride is None else f"({shape.stride})"
            if FORMS[kept].wide:
                return f"(BQ({self.cell(web)}) + IOTAQ({i}) * BQ((u64)(i64){stride}))"
            return f"(BU({self.cell(web)}) + IOTA({i}) * BU((u32){stride}))"
        return self.cell(web, f"_{i}")

    def pred(self, operand: Operand) -> str:
        """A predicate operand as a lane mask."""
        if isinstance(operand, Imm):
            return "~0u" if operand.value else "0u"
        assert isinstance(operand, Reg)
        if operand.name == "%is_explicit_cluster":
            return "-w->is_in_cluster"
        name = self.cell(self.web(operand))
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
            "%nwarpid": "((w->ntid[0] * w->ntid[1] * w->ntid[2] + 31) / 32)", "%smid": "w->smid", "%nsmid": "rt_multiprocessors()",
            "%gridid": "w->grid_id", "%dynamic_smem_size": "w->dynamic_shared", "%total_smem_size": "w->shared_size",
            "%aggr_smem_size": "w->shared_size", "%envreg1": "w->environment[0]", "%envreg2": "w->environment[1]",
            "%reserved_smem_offset_begin": "w->reserved", "%reserved_smem_offset_0": "w->reserved",
            "%cluster_ctaid": f"w->in_cluster[{index}]", "%cluster_nctaid": f"w->cluster[{index}]",
            "%clusterid": f"(w->ctaid[{index}] / w->cluster[{index}])",
            "%nclusterid": f"(w->nctaid[{index}] / w->cluster[{index}])", "%cluster_ctarank": "w->cluster_rank",
            "%cluster_nctarank": "(w->cluster[0] * w->cluster[1] * w->cluster[2])",
            "%reserved_smem_offset_1": "(w->reserved + RESERVED_BYTES / 2)",
            "%reserved_smem_offset_end": "(w->reserved + RESERVED_BYTES)", "%reserved_smem_offset_cap": "RESERVED_BYTES",
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

    def affine_result(self, instr: Instr) -> bool:
        """Whether the result is stored as base and stride."""
        return self.result_shape(instr.operands[0]).kind is Kind.AFFINE

    def needs_blend(self, web: int) -> bool:
        return self.blend is not None and not (self.values.local[web] and self.blend == "m")

    def put_scalar(self, operand: Operand, t: str, text: str, stride: str = "0") -> None:
        """Write the store of a uniform value, or of an affine base with its stride, to a register."""
        if isinstance(operand, Reg) and operand.name == "_":
            return
        web = self.result_web(operand)
        shape = self.web_shape(web)
        kept = self.declared(self.values.register[web])
        text = self._store_scalar(text, t, kept)
        if shape.kind is Kind.VECTOR:
            for i in self.pieces(kept):
                self._put_piece(web, kept, i, f"{FORMS[kept].broadcast}({text})")
            return
        self.line(f"{self.cell(web)} = {text};")
        if shape.is_dynamic:
            self.line(f"{self.cell(web, '_s')} = {stride};")

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
        """Write the store of a vector value to a register; `piece` returns its pieces as C vectors of type `t`."""
        if isinstance(operand, Reg) and operand.name == "_":
            return
        web = self.result_web(operand)
        assert self.web_shape(web).kind is Kind.VECTOR, (self.instr, str(self.web_shape(web)))
        kept = self.declared(self.values.register[web])
        if FORMS[kept].wide != FORMS[t].wide:
            if FORMS[kept].wide:  # a narrow value into a 64-bit register: ld, cvt
                signed = t[0] == "s"
                temps = [self.fresh() for _ in self.pieces(t)]
                for i, name in enumerate(temps):
                    self.line(f"{FORMS[t].vector} {name} = {piece(i)};")
                widen = "widen_i" if signed else "widen_u"
                for i in self.pieces(kept):
                    self._put_piece(web, kept, i, f"(VQ){widen}_{half_of(i)}({temps[i // 2]})")
                return
            raise self.refuse()
        if self.blend is not None:
            temps = [self.fresh() for _ in self.pieces(t)]
            for i, name in enumerate(temps):
                self.line(f"{FORMS[t].vector} {name} = {piece(i)};")
            for i, name in enumerate(temps):
                self._put_piece(web, kept, i, self._trim(name, t, kept))
            return
        # A piece may read the register that it replaces (add r, r, 1). It reads only the same piece, so writing in
        # place is safe; an instruction that mixes pieces uses temporaries.
        for i in self.pieces(t):
            self._put_piece(web, kept, i, self._trim(piece(i), t, kept))

    def _trim(self, text: str, t: str, kept: str) -> str:
        if BITS[t] == 16 and t not in ("f16x2",):
            return f"((VU)({text}) & 0xffffu)"
        if BITS[t] == 8:
            return f"((VU)({text}) & 0xffu)"
        return text

    def _put_piece(self, web: int, kept: str, i: int, text: str) -> None:
        name = self.cell(web, f"_{i}")
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
        name = self.cell(web)
        if self.web_shape(web).kind is Kind.VECTOR and self.needs_blend(web):
            self.line(f"{name} = (({text}) & {self.blend}) | ({name} & ~{self.blend});")
        else:
            self.line(f"{name} = {text};")

    def op(self, instr: Instr, result_type: str, operands: Sequence[tuple[Operand, str]], make: Expression) -> None:
        """Write an instruction whose result depends lane by lane on its operands. `make(suffix, *texts)` returns the C
        expression, with scalars for suffix "s" and vectors for "v". If one of the types is wide, the others are
        widened, and the result is narrowed."""
        d = instr.operands[0]
        if isinstance(d, Reg) and d.name == "_":
            return
        if all(self.uniform(o) for o, _ in operands):
            self.put_scalar(d, result_type, make("s", *(self.s(o, t) for o, t in operands)))
            return
        wide = FORMS[result_type].wide or any(FORMS[t].wide for _, t in operands)

        def piece(i: int) -> str:
            return make(
                "v", *(self.v(o, t, i) if FORMS[t].wide == wide else self.widened(o, t, i) for o, t in operands)
            )

        if wide and not FORMS[result_type].wide:
            self.put(d, result_type, lambda i: f"narrow_q((VQ){piece(2 * i)}, (VQ){piece(2 * i + 1)})")
        else:
            self.put(d, result_type, piece)

    def widened(self, operand: Operand, t: str, i: int) -> str:
        """Piece `i` of an unsigned operand widened to a row twice as wide."""
        return f"widen_u_{half_of(i)}({self.v(operand, t, i // 2)})"

    # ---- instructions and blocks --------------------------------------------------------------------------------------

    def write(self, instr: Instr) -> None:
        """Write an instruction to the text, or as a row of threaded code."""
        self.instr = instr
        if self.in_variables:
            self._write(instr)
            return
        signature, places = self._signature(instr)
        recipes = self.code.templates.recipes
        recipe = recipes.get(signature)
        if recipe is not None:
            self.code.add(recipe.template, recipe.operands(places))
            return
        made = self.as_row(lambda: self._write(instr))
        if made and signature:
            recipes[signature] = Recipe.of(*made, places)

    def as_row(self, write: Callable[[], None]) -> tuple[int, list[Hole]] | None:
        """Make the text that `write` writes a row, and return its template and the contents of its holes. If the text
        names something that only this form has, keep it as text and return None."""
        start, self.temp, self.in_row, self.pinned = len(self.lines), 0, True, False
        write()
        text = "\n".join(self.lines[start:])
        del self.lines[start:]
        self.in_row = False
        if self.pinned:
            self.line(f"{{\n{fill(text)}\n}}")
            return None
        if not text:
            return None
        template, holes = self.code.templates.row(text)
        self.code.add(template, [value for _, value in holes])
        return template, holes

    def _signature(self, instr: Instr) -> tuple[Signature, list[int]]:
        """The signature of arithmetic on registers and literals, and its registers' places; () for other instructions,
        whose text may depend on more."""
        if instr.op not in _ARITHMETIC or "cc" in instr.mods or (self.layout.counting and instr.guard is not None):
            return (), []
        places: list[int] = []
        parts: list[object] = [instr.op, instr.mods, self.slow]
        for n, operand in enumerate(instr.operands if instr.guard is None else (*instr.operands, instr.guard)):
            if isinstance(operand, Reg):
                web = self.values.web_at.get((instr.index, operand.name, n == 0))
                if web is None:
                    return (), []
                place = self.places[web]
                if place not in places:
                    places.append(place)
                parts.append((self.facts[web], places.index(place), operand.negated))
            elif isinstance(operand, Imm):
                parts.append(operand)
            else:
                return (), []
        if instr.guard is not None:
            parts.append("guarded")
        return tuple(parts), places

    def _write(self, instr: Instr) -> None:
        self.mask = "m"
        self.blend = "m" if self.slow else None
        guard = instr.guard
        closing = ""
        if guard is not None:
            p = self.pred(guard)
            if self.web_shape(self.web(guard)).kind is Kind.UNIFORM:
                self.line(f"if ({p}) {{")
                closing = "}"
            else:
                g = self.fresh("g")
                self.line(f"const u32 {g} = {p} & m;" if instr.op not in ("call",) else f"u32 {g} = {p} & m;")
                self.mask = g
                self.blend = g
                if instr.op in ("ld", "st", "atom", "red", "call", "cp", "trap", "tex", "suld", "sust", "wgmma"):
                    self.line(f"if ({g}) {{")
                    closing = "}"
        handler = HANDLERS.get(instr.op)
        if handler is None:
            raise self.refuse()
        if self.layout.counting:
            self.layout.counting.operation(self, instr)
        start = len(self.lines)
        self.line("{")
        handler(self, instr)
        if len(self.lines) == start + 1:
            self.lines.pop()
        else:
            self.line("}")
        if closing:
            self.line(closing)
