"""The single changes that are tried at an expression or statement, with how likely each is.

The alternatives come from the program itself where they can: another variable of the same list or block, an index or
a factor that the function uses elsewhere. A wrong program mostly has the right expression somewhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from tree_sitter import Node

from grader.base.sizes import Whole
from grader.checking.repairs.scopes import BUILT_IN, REAL, REAL_CALLS, WHOLE, Scopes, Type, arguments_of, operator_of
from grader.cpp.tree import line_of, name_of, text_of, walk

PRIOR = {
    "size": 1.5, "comparison": 1.0, "rounding": 1.0, "width": 0.9, "indices": 0.9, "base": 0.9, "called": 0.9,
    "axis": 0.8, "number": 0.6, "index": 0.8, "factor": 0.6, "reset": 1.0, "name": 0.6,
}  # fmt: skip
"""Ten more kinds, such as another operator, a term more or a statement less, found nothing in 46 blind programs."""
Kind = Annotated[str, Field(pattern=f"^({'|'.join(PRIOR)})$", max_length=40)]

MINUS_INFINITY = "(-(float)(1e300*1e300))"
_COMPARED = {
    "<": ("<=", ">"), ">": (">=", "<"), "<=": ("<", ">="), ">=": (">", "<="), "==": ("!=", "<=", ">="), "!=": ("==",),
}  # fmt: skip
_LIKE = {
    "expf": "exp2f", "exp2f": "expf", "exp": "exp2", "exp2": "exp", "__expf": "exp2f", "fmaxf": "fminf",
    "fminf": "fmaxf", "max": "min", "min": "max", "sqrtf": "rsqrtf", "rsqrtf": "sqrtf",
    "__shfl_down_sync": "__shfl_xor_sync", "__shfl_xor_sync": "__shfl_down_sync", "__shfl_up_sync": "__shfl_down_sync",
}  # fmt: skip
_SIZED = {"malloc": 0, "cudaMalloc": 1, "cudaMemcpy": 2, "cudaMemcpyAsync": 2, "cudaMemset": 2, "fread": 2, "fwrite": 2}
_LEAVES = frozenset({"identifier", "subscript_expression", "field_expression"})
_REAL_SITES = _LEAVES | {"binary_expression", "call_expression", "number_literal"}
MOST_TEXT = 300
_MOST_NAMES, _MOST_INDICES, _MOST_FACTORS, _MOST_FIELDS = 6, 8, 6, 2
_ANOTHER = 0.95
"""How likely an alternative is next to the one before it of the same kind in the same place."""


class Change(BaseModel):
    """`new` in place of the source's bytes `start` to `end`, `old`, or an addition at the beginning of a `block`.
    `number` tells it from the other changes of a program."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    number: Whole = 0
    file: Annotated[str, Field(max_length=200)]
    start: Whole
    end: Whole
    line: Whole
    kind: Kind
    old: Annotated[str, Field(max_length=MOST_TEXT)]
    new: Annotated[str, Field(max_length=MOST_TEXT)]
    likely: float
    block: bool = False


def one_line(text: str) -> str:
    return " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL).split())


class Changes:
    """The changes of one source."""

    def __init__(self, file: str, scopes: Scopes) -> None:
        self.file, self.scopes = file, scopes
        self._known = (
            BUILT_IN | scopes.macros | {*scopes.numbers, *scopes.functions} | REAL_CALLS | {"size_t", "max", "min"}
        )
        nodes = list(walk(scopes.root))
        leaves = (node for node in nodes if node.type in _LEAVES and not _is_in(node, "field_expression"))
        self._places = [node for node in nodes if self._is_place(node)]
        self._factors = [node for node in leaves if scopes.type_of(node) == REAL]
        calls = (node for node in nodes if node.type == "call_expression")
        sized = ((call, _SIZED.get(name_of(call.child_by_field_name("function")))) for call in calls)
        self._sizes = {size.id for call, at in sized if at is not None for size in arguments_of(call)[at : at + 1]}

    def _is_place(self, node: Node) -> bool:
        """Whether an operation gives an index, or the pointer that a variable is set to or a function returns."""
        if node.type != "binary_expression":
            return False
        is_value = _is_in(node, "return_statement") or _is_in(node, "init_declarator")
        return _is_in(node, "subscript_argument_list") or (is_value and self.scopes.type_of(node)[1] == 1)

    def of(self, node: Node) -> Iterator[Change]:
        """The changes at a node, each of another text than the node's. Long expressions are left alone."""
        old = one_line(text_of(node))
        seen, likely, block = {old}, dict(PRIOR), node.type == "compound_statement"
        change = partial(Change, file=self.file, start=node.start_byte, end=node.end_byte, line=line_of(node))
        for kind, new in self._of(node) if block or len(old) <= MOST_TEXT else ():
            if (new := one_line(new)) not in seen and len(new) <= MOST_TEXT:
                seen.add(new)
                yield change(kind=kind, old="" if block else old, new=new, likely=likely[kind], block=block)
                likely[kind] *= _ANOTHER

    def _of(self, node: Node) -> Iterator[tuple[Kind, str]]:
        type = self.scopes.type_of(node)
        is_index = _is_in(node, "subscript_argument_list")
        if is_index:
            yield from (("index", new) for new in _near(node))
        if is_index or self._is_place(node):
            yield from (("index", new) for new in self._borrowed(node))
        match node.type:
            case "compound_statement":
                yield from (("reset", f"{name} = 0;") for name in self._sums_in_loop(node))
            case "binary_expression":
                yield from self._of_operation(node, type)
            case "identifier" | "field_expression":
                yield from self._of_name(node, type)
            case "number_literal":
                yield from _of_number(text_of(node), type)
            case "subscript_expression":
                yield from _of_subscript(node)
            case "call_expression" if (called := text_of(node.child_by_field_name("function"))) in _LIKE:
                other = f"{_LIKE[called]}({', '.join(map(text_of, arguments_of(node)))})"
                yield "base" if "exp" in called else "called", other
        if type == REAL and node.type in _REAL_SITES and self._is_value(node):
            yield from self._of_real(node)
        if node.id in self._sizes:
            yield "size", f"({text_of(node)}) * sizeof(float)"

    def _of_operation(self, node: Node, type: Type) -> Iterator[tuple[Kind, str]]:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return
        a, b, operator = text_of(left), text_of(right), operator_of(node)
        if operator in _COMPARED and self.scopes.type_of(left) in (WHOLE, REAL):
            if self.scopes.type_of(right) not in (WHOLE, REAL):
                return
            for other in _COMPARED[operator]:
                yield "comparison", f"{a} {other} {b}"
            if operator == "<":
                yield "comparison", f"{a} + 1 < {b}"
        elif type == WHOLE and operator == "/":
            yield from (("rounding", f"({a} + {b} - 1) / {b}"), ("rounding", f"{a} / {b} + 1"))
        elif type == WHOLE and operator == "+" and left.type == "binary_expression" and operator_of(left) == "*":
            row, width = (left.child_by_field_name(side) for side in ("left", "right"))
            if row is not None and width is not None and self.scopes.type_of(width) == WHOLE:
                for _, each in self._of_name(width, WHOLE):
                    yield "width", f"{text_of(row)} * {each} + {b}"
                for each in (text_of(width), *self._siblings(width)):
                    yield "indices", f"{b} * {each} + {text_of(row)}"

    def _siblings(self, node: Node) -> Iterator[str]:
        """Names that could stand for a whole number: variables that are declared next to it, fields of the same
        structure."""
        name = text_of(node)
        if node.type == "field_expression":
            field = text_of(node.child_by_field_name("field"))
            before = name[: len(name) - len(field)]
            of = self.scopes.fields.get(field)
            yield from (before + other for other, found in self.scopes.fields.items() if found == of and other != field)
        elif node.type == "identifier" and (own := self.scopes.find(name, node.start_byte)) is not None:
            near = list(self.scopes.in_scope(WHOLE, node.start_byte))
            same = [v.name for v in near if v.owner == own.owner and v.name != name]
            others = [v.name for v in near if v.owner != own.owner]
            yield from islice(dict.fromkeys((*same, *others)), _MOST_NAMES)

    def _of_name(self, node: Node, type: Type) -> Iterator[tuple[Kind, str]]:
        if node.type == "identifier" and text_of(node) in ("FLT_MIN", "FLT_MAX", "INFINITY"):
            yield from (("number", MINUS_INFINITY), ("number", "0.0f"))
        if node.type == "field_expression":
            built_in, axis = (text_of(node.child_by_field_name(each)) for each in ("argument", "field"))
            if built_in in BUILT_IN:
                if built_in.endswith("Idx"):  # an axis of one block would make any loop take all steps
                    yield from (("axis", f"{built_in}.{other}") for other in "xyz" if other != axis)
                pair = {"threadIdx": "blockIdx", "blockIdx": "threadIdx", "blockDim": "gridDim", "gridDim": "blockDim"}
                yield "axis", f"{pair[built_in]}.{axis}"
                return
        if type == WHOLE:
            yield from (("name", other) for other in self._siblings(node))

    def _of_real(self, node: Node) -> Iterator[tuple[Kind, str]]:
        """Another real number in its place was right twice in 100 blind programs, by chance: any maximum does."""
        old, names, parent = text_of(node), self._real_names(node), node.parent
        plain = f"({old})" if node.type in ("binary_expression", "conditional_expression") else old
        chain = operator_of(parent) if parent is not None and parent.type == "binary_expression" else ""
        if chain not in ("*", "/"):  # a factor of a part is one of the whole
            yield from (("factor", f"{plain} {operator} {other}") for operator in "*/" for other in names)

    def _real_names(self, node: Node) -> list[str]:
        """Real numbers that the function has at hand, the nearest in the source first."""
        at, scopes = node.start_byte, self.scopes
        structures = (v for each in scopes.variables.values() for v in each if v.start <= at < v.end and not v.type[1])
        fields = [f for f, (type, owner) in scopes.fields.items() if type == REAL and scopes.structures.get(owner)]
        near = [f"{v.name}.{f}" for v in structures for f in fields
                if scopes.structures[scopes.fields[f][1]] == v.type[0]][:_MOST_FIELDS]  # fmt: skip
        own = scopes.root.child_with_descendant(node) or node
        uses = [each for each in self._factors if own.start_byte <= each.start_byte < own.end_byte]
        near += self._others({one_line(text_of(each)): each for each in reversed(uses)}.values(), at)  # its first use
        near += [variable.name for variable in islice(scopes.in_scope(REAL, at), _MOST_NAMES)]
        return [name for name in dict.fromkeys(near) if name != one_line(text_of(node))][:_MOST_FACTORS]

    def _borrowed(self, node: Node) -> Iterator[str]:
        """The texts of indices and pointers that could stand here, the nearest first."""
        type = self.scopes.type_of(node)
        fit = [other for other in self._places if self.scopes.type_of(other) == type]
        yield from islice(self._others(fit, node.start_byte), _MOST_INDICES)

    def _others(self, expressions: Iterable[Node], at: int) -> Iterator[str]:
        """The texts of those that could stand at byte `at`, the nearest first."""
        near = sorted(expressions, key=lambda other: abs(other.start_byte - at))
        yield from dict.fromkeys(one_line(text_of(each)) for each in near if self._means_the_same(each, at))

    def _means_the_same(self, expression: Node, at: int) -> bool:
        """Whether all names of an expression are in scope at byte `at` too, with the same types."""
        for node in walk(expression):
            if node.type == "identifier" and (name := text_of(node)) not in self._known:
                here, there = self.scopes.find(name, at), self.scopes.find(name, node.start_byte)
                if here is None or there is None or here.type != there.type:
                    return False
        return True

    def _is_value(self, node: Node) -> bool:
        parent = node.parent
        if parent is None:
            return False
        if parent.type == "assignment_expression":
            return node == parent.child_by_field_name("right")
        if parent.type == "argument_list":
            return parent.parent is not None and parent.parent.type == "call_expression"
        if parent.type == "binary_expression":
            return self.scopes.type_of(parent) == REAL
        return parent.type in ("init_declarator", "return_statement", "conditional_expression")

    def _sums_in_loop(self, body: Node) -> Iterator[str]:
        """The real variables from outside a loop to which its body adds."""
        if body.parent is None or body.parent.type not in ("for_statement", "while_statement"):
            return
        names = set()
        for node in walk(body):
            target = node.child_by_field_name("left") if node.type == "assignment_expression" else None
            if target is not None and target.type == "identifier" and operator_of(node) == "+=":
                found = self.scopes.find(text_of(target), node.start_byte)
                if found is not None and found.type == REAL and found.start < body.start_byte:
                    names.add(found.name)
        yield from sorted(names)


def _of_number(text: str, type: Type) -> Iterator[tuple[Kind, str]]:
    if type == WHOLE and (plain := re.match(r"\d+", text)) and not text.lower().startswith("0x"):
        value = int(plain[0])
        others = (value * 2, value // 2, value + 1, value - 1)[:: 1 if value.bit_count() == 1 else -1]
        yield from (("number", str(v)) for v in others if 0 <= v != value)
    elif type == REAL:
        yield from (("number", other) for other in ("0.0f", "1.0f", MINUS_INFINITY, f"2.0f * {text}", f"0.5f * {text}"))


def _is_in(node: Node, type: str) -> bool:
    return node.parent is not None and node.parent.type == type


def _near(index: Node) -> Iterator[str]:
    """The element before and after, or the neighbour on the other side."""
    if index.type == "identifier":
        yield from (f"{text_of(index)} - 1", f"{text_of(index)} + 1")
    elif index.type == "binary_expression" and (operator := operator_of(index)) in ("+", "-"):
        left, right = (text_of(index.child_by_field_name(side)) for side in ("left", "right"))
        yield f"{left} {'-' if operator == '+' else '+'} {right}"


def _of_subscript(node: Node) -> Iterator[tuple[Kind, str]]:
    inner, last = node.child_by_field_name("argument"), text_of(node.child_by_field_name("indices"))
    if inner is not None and inner.type == "subscript_expression":
        first, array = (text_of(inner.child_by_field_name(each)) for each in ("indices", "argument"))
        yield "indices", f"{array}{last}{first}"
