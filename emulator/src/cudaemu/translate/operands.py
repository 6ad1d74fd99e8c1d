"""The C text of one form while it is written: the places of its registers, and the operands of its instructions."""

from __future__ import annotations

import re
from functools import cached_property

from cudaemu.analysis.cfg import Graph
from cudaemu.analysis.effects import CARRY, is_special, read
from cudaemu.analysis.shapes import UNIFORM, Kind, Shape, Values
from cudaemu.lacking import lacking_instruction
from cudaemu.ptx import Imm, Instr, Operand, Reg, Sym
from cudaemu.translate.frame import Frame
from cudaemu.translate.layout import Layout
from cudaemu.translate.refusal import Refused
from cudaemu.translate.shape_rules import special_shape
from cudaemu.translate.special import special_scalar, special_vector
from cudaemu.translate.template import Code, number_hole, offset_hole
from cudaemu.translate.types import BITS, FORMS, narrowed, storage


class Operands:
    """The C text of one form and the operands of the current instruction.

    In a threaded block, registers are in the frame, and instructions become rows of `code`. In a compiled block,
    registers are C variables, and gcc optimises the block's text as a whole.
    """

    def __init__(self, layout: Layout, graph: Graph, values: Values, form: str, frame: Frame, code: Code) -> None:
        self.layout, self.graph, self.values, self.form = layout, graph, values, form
        self.function = layout.function
        self.slow = form == "slow"
        self.gathered = layout.waits.gathers if self.slow else frozenset()
        self.frame, self.code = frame, code
        self.places = frame.threaded(values)
        types, numbered = self.function.registers, code.templates.numbered
        self.facts = [
            numbered((types.get(register), shape, local))
            for register, shape, local in zip(values.register, values.shape, values.local, strict=True)
        ]
        self.in_row = False  # the text being written becomes a row
        self.pinned = False  # the text is specific to this form: no row
        self.in_variables = False  # the current block is compiled
        self.used: set[int] = set()  # webs that the current compiled block uses
        self.lines: list[str] = []
        self.mask = "m"  # lanes for memory operations of the current instruction
        self.blend: str | None = None  # lanes whose registers change, or None for all
        self.lanes = layout.warp_lanes
        self.temp = 0
        self.instr: Instr | None = None
        self.block = 0

    @cached_property
    def read_registers(self) -> frozenset[str]:
        """The registers that an instruction of the program reads; what records values (watching.py) is no such."""
        own = (each for each in self.function.body if isinstance(each, Instr) and each.op != "watch")
        return frozenset(name for each in own for name in read(each))

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
        """Mark the current text as specific to this form, because it names, for example, a variable of the module. It
        cannot be a template."""
        self.pinned = True

    def number(self, value: int) -> str:
        """C expression of type int for a number. In a row of threaded code it becomes a hole of the template."""
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

    def lanes_meet(self) -> None:
        """Count a step in programs with race or init checks, because the warp's lanes wait for each other here."""
        if self.layout.watched:
            self.line("w->step++;")

    def refuse(self, what: str | None = None, advice: str | None = None) -> Refused:
        assert self.instr is not None
        if what is None and (found := lacking_instruction(self.instr.text)) is not None:
            return Refused(f"{found.what} ({self.instr.text})", self.instr.loc, advice or found.advice)
        what = what or f"the PTX instruction {self.instr.text}"
        return Refused(what, self.instr.loc, advice) if advice else Refused(what, self.instr.loc)

    # ---- variables ------------------------------------------------------------------------------------------------

    def stored_type(self, name: str) -> str:
        kind = "pred" if name == CARRY else self.function.registers.get(name)
        if kind is None:
            raise self.refuse(f"the register {name}, which is not declared,")
        return storage(kind)

    def cell(self, web: int, part: str = "") -> str:
        """C text for a web. `part` is "" for a single value or a base, "_s" for a stride, "_0", … for a piece."""
        if not self.in_variables:
            return self._in_frame(web, self.places[web], part)
        self.used.add(web)
        return f"{self.name(web)}{part}"

    def frame_cell(self, web: int, part: str = "") -> str:
        """C text for the place from which the slow form reads a web."""
        return self._in_frame(web, self.frame.places[web], part)

    def name(self, web: int) -> str:
        stem = re.sub(r"\W", "_", self.values.register[web].lstrip("%"))
        return f"{stem}_w{web}"

    def _in_frame(self, web: int, place: int, part: str) -> str:
        stored = self.stored_type(self.values.register[web])
        base = offset_hole(place) if self.in_row else str(place)
        if part == "_s":
            return f"(*(i64 *)(F + {base} + 8))"
        kind = "u32" if stored == "pred" else FORMS[stored].vector if part else FORMS[stored].scalar
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
            return special_shape(operand.name, linear=self.form == "linear")
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
            return f"(({form.scalar})({self._special(operand, special_scalar(operand.name))}))"
        web = self.web(operand)
        stored = self.stored_type(operand.name)
        return self._convert_scalar(self.cell(web), stored, t)

    def _convert_scalar(self, text: str, stored: str, t: str) -> str:
        if stored == "pred":
            raise self.refuse()
        form = FORMS[t]
        if stored == t and t in ("f32", "f64"):
            return text
        if stored == "f32":
            text = f"f2u({text})"
        elif stored == "f64":
            text = f"d2q({text})"
        if t == "f32":
            return f"u2f({text})"
        if t == "f64":
            return f"q2d({text})"
        if BITS[t] == 16 and BITS[stored] >= 16:
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
        """The value that a uniform or affine operand has in lane 0, or would have if the lane were active."""
        if isinstance(operand, Reg) and not is_special(operand.name):
            web = self.web(operand)
            if self.web_shape(web).kind is Kind.AFFINE:
                return f"(({FORMS[t].scalar}){self.cell(web)})"
        elif isinstance(operand, Reg) and special_shape(operand.name, linear=self.form == "linear").kind is Kind.AFFINE:
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
            special = special_vector(operand.name, i, linear=self.form == "linear", lanes=self.lanes)
            return f"(({form.vector}){self._special(operand, special)})"
        stored = self.stored_type(operand.name)
        if FORMS[stored].wide and not form.wide:  # a 64-bit register read by a narrower instruction
            text = f"narrow_q({self.piece(operand, 2 * i)}, {self.piece(operand, 2 * i + 1)})"
        elif form.wide and not FORMS[stored].wide:
            raise self.refuse()
        else:
            text = self.piece(operand, i)
        filled = t in ("u16", "b16") and BITS[self.function.registers[operand.name]] > 16
        if filled or t in ("s16", "s8", "u8", "b8"):
            return narrowed(text, t)
        return f"(({form.vector}){text})"

    def _special(self, register: Reg, text: str | None) -> str:
        if text is None:
            raise self.refuse(f"the special register {register.name}", "avoid it or run on a GPU (--engine cuda)")
        return text

    def piece(self, operand: Reg, i: int) -> str:
        """Piece `i` of a register in its stored type."""
        return self.web_piece(self.web(operand), i)

    def web_piece(self, web: int, i: int) -> str:
        stored = self.stored_type(self.values.register[web])
        shape = self.web_shape(web)
        if shape.kind is Kind.UNIFORM:
            return f"{FORMS[stored].broadcast}({self.cell(web)})"
        if shape.kind is Kind.AFFINE:
            stride = self.cell(web, "_s") if shape.stride is None else f"({shape.stride})"
            if FORMS[stored].wide:
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
