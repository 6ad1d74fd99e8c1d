"""Write the instructions of one form of a PTX function as C: results, and the dispatch to each family's code.

runtime/warp.h explains the forms, operands.py the operands, control.py the code between blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cudaemu.analysis.shapes import Kind, Shape
from cudaemu.ptx import Imm, Instr, Operand, Reg, Vec, items_of
from cudaemu.translate.operands import Operands
from cudaemu.translate.template import Hole, Recipe, Signature, fill
from cudaemu.translate.types import BITS, FORMS, half_of

Expression = Callable[..., str]


# Instructions whose text depends only on their operands, the first of which is the result.
_ARITHMETIC = {
    "add", "sub", "mul", "mad", "fma", "mov", "selp", "setp", "and", "or", "xor", "not", "shl", "shr", "neg", "abs",
    "min", "max", "ex2", "lg2", "rcp", "sqrt", "rsqrt", "cvt", "mma",
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

    `{t}` stands for the instruction's type, `{0}` and `{1}` for its first two modifiers, `{a}` and `{b}` for the first
    letters, u or s, of its first two types."""

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


class Writer(Operands):
    """Writes results and whole instructions. Each family of instructions has functions that take a writer; HANDLERS
    lists them."""

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
        stored = self.stored_type(self.values.register[web])
        text = self._store_scalar(text, t, stored)
        if shape.kind is Kind.VECTOR:
            for i in self.pieces(stored):
                self._put_piece(web, stored, i, f"{FORMS[stored].broadcast}({text})")
            return
        self.line(f"{self.cell(web)} = {text};")
        if shape.is_dynamic:
            self.line(f"{self.cell(web, '_s')} = {stride};")

    def _store_scalar(self, text: str, t: str, stored: str) -> str:
        if t in ("f32", "f64") and t == stored:
            return text
        if t == "f32":
            text = f"f2u({text})"
        elif t == "f64":
            text = f"d2q({text})"
        if BITS[t] == 16 and not FORMS[stored].wide:
            text = f"(u16)({text})"
        elif BITS[t] == 8 and not FORMS[stored].wide:
            text = f"(u8)({text})"
        if stored == "f32":
            return f"u2f({text})"
        if stored == "f64":
            return f"q2d({text})"
        return f"({FORMS[stored].scalar})({text})"

    def put(self, operand: Operand, t: str, piece: Callable[[int], str]) -> None:
        """Write the store of a vector value to a register; `piece` returns its pieces as C vectors of type `t`."""
        if isinstance(operand, Reg) and operand.name == "_":
            return
        web = self.result_web(operand)
        assert self.web_shape(web).kind is Kind.VECTOR, (self.instr, str(self.web_shape(web)))
        stored = self.stored_type(self.values.register[web])
        widens = FORMS[stored].wide and not FORMS[t].wide  # a narrow value into a 64-bit register: ld, cvt
        if FORMS[t].wide and not FORMS[stored].wide:
            raise self.refuse()
        pieces = [piece(i) for i in self.pieces(t)]
        if widens or self.blend is not None:
            for i, text in enumerate(pieces):
                pieces[i] = self.fresh()
                self.line(f"{FORMS[t].vector} {pieces[i]} = {text};")
        widen = "widen_i" if t[0] == "s" else "widen_u"
        # Without these temporaries, a piece's text may read the register that it replaces (add r, r, 1). That is safe,
        # because the text reads only the same piece; handlers of instructions that mix pieces use their own
        # temporaries.
        for i in self.pieces(stored):
            text = f"(VQ){widen}_{half_of(i)}({pieces[i // 2]})" if widens else _trimmed(pieces[i], t)
            self._put_piece(web, stored, i, text)

    def _put_piece(self, web: int, stored: str, i: int, text: str) -> None:
        name = self.cell(web, f"_{i}")
        form = FORMS[stored]
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
        widened, and a narrow result is narrowed again."""
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
        """Turn the text that `write` writes into a row, and return its template and the contents of its holes. Return
        None if there is no text, or if it is specific to this form (`pin`) and so stays text."""
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
        """The signature of arithmetic on registers and literals, and the places of its registers; () for other
        instructions, whose text may depend on more."""
        if instr.op not in _ARITHMETIC or "cc" in instr.mods or (self.layout.counting and instr.guard is not None):
            return (), []
        places: list[int] = []
        parts: list[object] = [instr.op, instr.mods, self.slow]
        for n, whole in enumerate(instr.operands if instr.guard is None else (*instr.operands, instr.guard)):
            if isinstance(whole, Vec):
                parts.append(len(whole.items))
            for operand in items_of(whole):
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
                self.line(f"{'' if instr.op == 'call' else 'const '}u32 {g} = {p} & m;")
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


def _trimmed(text: str, t: str) -> str:
    """A vector truncated to the bits of type `t`."""
    if BITS[t] >= 32:
        return text
    return f"((VU)({text}) & 0x{(1 << BITS[t]) - 1:x}u)"
