"""One program with all changes: each is behind a switch, whose number the emulator gives to host and device."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from tree_sitter import Node

from grader.base.sizes import Whole
from grader.checking.repairs.changes import MINUS_INFINITY, Change, Changes, one_line
from grader.checking.repairs.scopes import Scopes, arguments_of
from grader.cpp.reading import Files, cpp_files
from grader.cpp.tree import name_of, parsed, text_of, walk
from grader.sandbox.room import confined

MOST_TRIES = 500
"""nvcc and the emulator take about 3 ms for each."""
_MOST_TEXT = 300
_SAME_LINE, _SAME_FUNCTION, _ON_THE_HOST = 3.0, 1.2, 0.9
SWITCH = "grader_change"
# In front of each file, on one line of its own that does not count.
_PRELUDE = f"""#ifndef GRADER_CHANGE
#define GRADER_CHANGE
extern "C" unsigned {SWITCH}_of_host(void);
template <class T> __host__ __device__ T {SWITCH}_value(T);
static __host__ __device__ __forceinline__ unsigned {SWITCH}() {{
#ifdef __CUDA_ARCH__
unsigned number; asm("mov.u32 %0, %%envreg0;" : "=r"(number)); return number;
#else
return {SWITCH}_of_host();
#endif
}}
#endif
#line 1
"""
# Where the compiler needs a value, or where there is none.
_FIXED = frozenset({
    "template_argument_list", "template_parameter_list", "array_declarator", "new_declarator", "type_descriptor",
    "preproc_def", "preproc_function_def", "preproc_call", "preproc_include", "enumerator", "parameter_list",
    "static_assert_declaration", "attribute_specifier", "launch_bounds", "gnu_asm_expression", "bitfield_clause",
    "field_initializer_list", "subscript_designator",
})  # fmt: skip


_Name = Annotated[str, Field(max_length=200)]
_Source = Annotated[str, Field(max_length=4 << 20)]


class Try(BaseModel):
    """A change by its number. `old` and `new` are shortened."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    number: Whole
    file: _Name
    line: Whole
    kind: Annotated[str, Field(max_length=20)]
    old: Annotated[str, Field(max_length=_MOST_TEXT)]
    new: Annotated[str, Field(max_length=_MOST_TEXT)]
    likely: float


class Schemata(BaseModel):
    """The files of the program with all changes, and these, the likeliest first."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    files: Annotated[tuple[tuple[_Name, _Source], ...], Field(max_length=100)] = ()
    tries: Annotated[tuple[Try, ...], Field(max_length=MOST_TRIES)] = ()


@confined(cpu_s=8, memory_bytes=2 << 30, answer_bytes=16 << 20)
def schemata(
    files: Files, suspected: Sequence[tuple[str, int]], without: Collection[tuple[str, int]], most: int
) -> Schemata:
    """The program with the `most` likeliest changes. `suspected` lines, and the functions around them, count more;
    those in `without` are left as they are."""
    sources = [
        (name, Scopes(parsed(content)), content) for name, content in cpp_files(files) if not name.endswith(".c")
    ]
    found: list[tuple[str, Change]] = []
    for name, scopes, _ in sources:
        wanted = [line for file, line in suspected if file == name]
        seen = set[tuple[int, int, str]]()
        for change in _changes(scopes, wanted):
            key = (change.start, change.end, change.new)
            if key not in seen and (name, change.line) not in without:
                seen.add(key)
                found.append((name, change))
    found = sorted(found, key=lambda each: -each[1].likely)[: min(most, MOST_TRIES)]
    numbers = {each: number for number, each in enumerate(sorted(found, key=_place), start=1)}
    written = []
    for name, scopes, content in sources:
        mine = {change: number for (file, change), number in numbers.items() if file == name}
        if mine:
            written.append((name, _PRELUDE + _Writer(content, mine).text(scopes.root)))
    tries = tuple(
        Try(number=numbers[name, c], file=name, line=c.line, kind=c.kind,
            old=c.old[:_MOST_TEXT], new=c.new.replace(MINUS_INFINITY, "-INFINITY")[:_MOST_TEXT], likely=c.likely)
        for name, c in found
    )  # fmt: skip
    return Schemata(files=tuple(written), tries=tries)


def _place(each: tuple[str, Change]) -> tuple[str, int, int, bool]:
    name, change = each
    return name, change.start, change.end, change.block


def _changes(scopes: Scopes, suspected: Sequence[int]) -> Iterator[Change]:
    changes, function = Changes(scopes), Function()
    for node in _sites(scopes):
        function.enter(node)
        for change in changes.of(node):
            if change.kind in ("name", "called") and not function.on_device:
                continue  # with a grid or a copy of another size, other mistakes do no harm
            factor = _SAME_LINE if change.line in suspected else 1.0
            factor *= _SAME_FUNCTION if any(function.first <= line <= function.last for line in suspected) else 1.0
            factor *= 1.0 if function.on_device else _ON_THE_HOST
            yield replace(change, likely=change.likely * factor)


class Function:
    """The function around the nodes of a walk."""

    first = last = 0
    on_device = False

    def enter(self, node: Node) -> None:
        if node.type == "function_definition":
            self.first, self.last = node.start_point[0] + 1, node.end_point[0] + 1
            head = text_of(node).partition("{")[0]
            self.on_device = "__global__" in head or "__device__" in head


def _sites(scopes: Scopes) -> Iterator[Node]:
    """The nodes at which changes may be: values in functions, statements, blocks; no place that is written to, and no
    value that the compiler needs. In the order of the source."""
    stack = [(scopes.root, False, False)]
    while stack:
        node, inside, written = stack.pop()
        if node.type in _FIXED or (inside and _is_fixed(node, scopes)):
            continue
        inside = inside or node.type == "function_definition"
        if inside and not written and not (node.type == "function_definition" and "constexpr" in _head(node)):
            yield node
        children = node.named_children
        for child in reversed(children):
            if node.type == "init_declarator" and child != node.child_by_field_name("value"):
                continue
            if node.type == "call_expression" and child == node.child_by_field_name("function"):
                if child.type == "field_expression":
                    stack.append((child, inside, True))
                continue
            if node.type == "argument_list" and child.type != "call_expression" and _is_macro(node.parent, scopes):
                continue  # it may be a name or a template's argument
            stack.append((child, inside, _is_written(node, child, written, scopes)))


def _is_macro(call: Node | None, scopes: Scopes) -> bool:
    return call is not None and text_of(call.child_by_field_name("function")) in scopes.macros


def _head(node: Node) -> str:
    return text_of(node).partition("{")[0].partition("=")[0]


def _is_fixed(node: Node, scopes: Scopes) -> bool:
    """Whether the compiler needs the values in a node."""
    if node.type == "function_definition":
        return "constexpr" in _head(node).split()
    if node.type == "declaration":
        words = set(_head(node).split())
        names = [name_of(each) for each in node.children_by_field_name("declarator")]
        found = [scopes.find(name, node.end_byte - 1) for name in names]
        constant = bool(found) and all(each is not None and each.constant for each in found)
        return constant or not words.isdisjoint({"constexpr", "__shared__", "static", "__constant__"})
    return node.type == "condition_clause" and node.parent is not None and "constexpr" in text_of(node.parent)[:14]


def _is_written(node: Node, child: Node, written: bool, scopes: Scopes) -> bool:
    """Whether `child` of `node` is a place, which is written to or whose address is taken, and no value."""
    match node.type:
        case "assignment_expression":
            return child == node.child_by_field_name("left")
        case "update_expression" | "field_expression":
            return True
        case "subscript_expression":
            return child == node.child_by_field_name("argument")
        case "pointer_expression":
            return written or text_of(node).startswith("&")
        case "parenthesized_expression":
            return written
        case "argument_list":
            call = node.parent
            if call is None or call.type != "call_expression":
                return False
            name, arguments = name_of(call.child_by_field_name("function")), arguments_of(call)
            place = arguments.index(child) if child in arguments else 0
            changed = scopes.functions.get(name, (None, ()))[1]
            return (place < len(changed) and changed[place]) or (
                not place and name.startswith(("atomic", "swap", "cudaMalloc"))
            )
    return False


class _Writer:
    """Writes one source with its changes, each with its number."""

    def __init__(self, source: bytes, numbers: dict[Change, int]) -> None:
        self.source = source
        self.at: dict[tuple[int, int, bool], list[tuple[int, Change]]] = {}
        for change, number in numbers.items():
            self.at.setdefault((change.start, change.end, change.block), []).append((number, change))

    def text(self, root: Node) -> str:
        """Without recursion: pieces go out in the order of the source, and around each node what its changes add."""
        before, after = dict[int, list[str]](), dict[int, list[str]]()
        spans = set[tuple[int, int, bool]]()
        for node in walk(root):
            key = (node.start_byte, node.end_byte, node.type == "compound_statement")
            if key in self.at and key not in spans:
                spans.add(key)
                opening, closing = self._around(key, sorted(self.at[key], key=lambda each: each[0]))
                before.setdefault(node.start_byte + key[2], []).append(opening)
                after.setdefault(node.end_byte, []).insert(0, closing)
        out, last = [], 0
        for at in sorted({*before, *after}):
            out.append(self.source[last:at].decode(errors="replace"))
            out += after.get(at, []) + before.get(at, [])
            last = at
        return "".join(out) + self.source[last:].decode(errors="replace")

    def _around(self, key: tuple[int, int, bool], changes: list[tuple[int, Change]]) -> tuple[str, str]:
        call = f"{SWITCH}()"
        if key[2]:
            return "".join(f"if ({call} == {n}u) {{ {change.new} }} " for n, change in changes), ""
        old = one_line(self.source[key[0] : key[1]].decode(errors="replace"))
        cast = f"(decltype({SWITCH}_value({old})))"
        first, count = changes[0][0], len(changes)
        chain = "".join(f"{call} == {n}u ? {cast}({change.new}) : " for n, change in changes[:-1])
        chain += f"{cast}({changes[-1][1].new})"
        return f"({call} - {first}u < {count}u ? ({chain}) : {cast}(", "))"
