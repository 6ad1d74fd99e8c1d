"""One program with all changes: each is behind a switch, whose number the emulator gives to host and device."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field
from tree_sitter import Node

from grader.checking.repairs.changes import MINUS_INFINITY, Change, Changes
from grader.checking.repairs.scopes import BUILT_IN, Scopes, arguments_of
from grader.cpp.reading import Files, cpp_files
from grader.cpp.tree import name_of, parsed, text_of, walk
from grader.sandbox.room import confined

MOST_TRIES = 400
"""nvcc and the emulator take about 3 ms for each."""
_ON_THE_HOST = 0.9
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
    "template_argument_list", "template_parameter_list", "array_declarator", "type_descriptor",
    "preproc_def", "preproc_function_def", "preproc_call", "preproc_include", "enumerator", "parameter_list",
    "static_assert_declaration", "attribute_specifier", "launch_bounds", "gnu_asm_expression", "bitfield_clause",
    "field_initializer_list", "subscript_designator",
})  # fmt: skip


class Schemata(BaseModel):
    """The files of the program with all changes, and these."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    files: Annotated[
        tuple[tuple[Annotated[str, Field(max_length=200)], Annotated[str, Field(max_length=4 << 20)]], ...],
        Field(max_length=100),
    ] = ()
    tries: Annotated[tuple[Change, ...], Field(max_length=MOST_TRIES)] = ()


@confined(cpu_s=8, memory_bytes=2 << 30, answer_bytes=16 << 20)
def schemata(files: Files, without: Collection[tuple[str, int]]) -> Schemata:
    """The program with the likeliest changes. The lines in `without` are left as they are."""
    sources = {name: content for name, content in cpp_files(files) if not name.endswith(".c")}
    roots = {name: parsed(content) for name, content in sources.items()}
    found: dict[tuple[str, int, int, str], Change] = {}
    for name, root in roots.items():
        for change in _changes(name, Scopes(root)):
            if (name, change.line) not in without:
                found.setdefault((name, change.start, change.end, change.new), change)
    likeliest = set(sorted(found.values(), key=lambda each: -each.likely)[:MOST_TRIES])
    in_order = [each for each in found.values() if each in likeliest]
    numbered = [each.model_copy(update={"number": number}) for number, each in enumerate(in_order, start=1)]
    written = [
        (name, _PRELUDE + _with_changes(sources[name], roots[name], list(mine)))
        for name, mine in itertools.groupby(numbered, key=lambda each: each.file)
    ]
    tries = [each.model_copy(update={"new": each.new.replace(MINUS_INFINITY, "-INFINITY")}) for each in numbered]
    return Schemata(files=tuple(written), tries=tuple(tries))


def _changes(file: str, scopes: Scopes) -> Iterator[Change]:
    changes = Changes(file, scopes)
    for function, sites in itertools.groupby(_sites(scopes), key=lambda site: site[0]):
        on_device = not {"__global__", "__device__"}.isdisjoint(_words(function, "{"))
        for change in (change for _, node in sites for change in changes.of(node)):
            if on_device:
                yield change
            # With a grid or a copy of another size, other mistakes do no harm; no thread runs here.
            elif change.kind not in ("name", "called") and not any(each in change.new for each in BUILT_IN):
                yield change.model_copy(update={"likely": change.likely * _ON_THE_HOST})


def _sites(scopes: Scopes) -> Iterator[tuple[Node, Node]]:
    """The nodes at which changes may be, each after its function: values, statements, blocks; no place that is written
    to, and no value that the compiler needs. In the order of the source."""
    fixed = _fixed(scopes)
    stack: list[tuple[Node, Node | None, bool]] = [(scopes.root, None, False)]
    while stack:
        node, function, written = stack.pop()
        if node.id in fixed:
            continue
        function = node if node.type == "function_definition" else function
        if function is not None and not written:
            yield function, node
        for child in reversed(node.named_children):
            if node.type == "init_declarator" and child != node.child_by_field_name("value"):
                continue
            if node.type == "call_expression" and child == node.child_by_field_name("function"):
                if child.type == "field_expression":
                    stack.append((child, function, True))
                continue
            if node.type == "argument_list" and child.type != "call_expression" and _is_macro(node.parent, scopes):
                continue  # it may be a name or a template's argument
            stack.append((child, function, _is_written(node, child, written, scopes)))


def _is_macro(call: Node | None, scopes: Scopes) -> bool:
    return call is not None and text_of(call.child_by_field_name("function")) in scopes.macros


def _words(node: Node, end: str) -> list[str]:
    """The words of a definition before its body or value, which begins with `end`."""
    return text_of(node).partition(end)[0].split()


def _is_fixed(node: Node) -> bool:
    """Whether the compiler needs the values in a node."""
    parent = node.parent
    if node.type == "function_definition":
        return "constexpr" in _words(node, "{")
    if node.type == "declaration":
        return not {"constexpr", "__shared__", "static", "__constant__"}.isdisjoint(_words(node, "="))
    if parent is not None and parent.type == "case_statement":
        return node == parent.child_by_field_name("value")
    of_types = node.type == "condition_clause" and parent is not None and "constexpr" in text_of(parent)[:14]
    return of_types or node.type in _FIXED


def _fixed(scopes: Scopes) -> set[int]:
    """The nodes in which the compiler needs the values, and the initialisers of the constants that are used in them."""
    nodes = [node for node in walk(scopes.root) if _is_fixed(node)]
    for node in nodes:
        used = {scopes.find(name, node.start_byte) for name in re.findall(r"\w+", text_of(node))}
        nodes += [v.value for v in used if v is not None and v.value is not None and v.value not in nodes]
    return {node.id for node in nodes}


def _is_written(node: Node, child: Node, written: bool, scopes: Scopes) -> bool:
    """Whether `child` of `node` is a place, which is written to or whose address is taken, and no value."""
    match node.type:
        case "assignment_expression" | "subscript_expression":
            return child == node.named_child(0)
        case "update_expression" | "field_expression":
            return True
        case "pointer_expression" | "parenthesized_expression":
            return written or text_of(node).startswith("&")
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


def _with_changes(source: bytes, root: Node, numbered: Sequence[Change]) -> str:
    """One source with its changes, in their order. Without recursion: pieces go out in the order of the source,
    and around each node what its changes add."""
    at: dict[tuple[int, int, bool], list[Change]] = {}
    for change in numbered:
        at.setdefault((change.start, change.end, change.block), []).append(change)
    before, after = dict[int, list[str]](), dict[int, list[str]]()
    for node in walk(root):
        block = node.type == "compound_statement"
        changes = at.pop((node.start_byte, node.end_byte, block), [])
        if block:
            added = [f"if ({SWITCH}() == {each.number}u) {{ {each.new} }} " for each in changes]
            before.setdefault(node.start_byte + 1, []).extend(added)
        elif changes:
            opening, closing = _around(changes)
            before.setdefault(node.start_byte, []).append(opening)
            after.setdefault(node.end_byte, []).insert(0, closing)
    out, last = [], 0
    for byte in sorted({*before, *after}):
        out.append(source[last:byte].decode(errors="replace"))
        out += after.get(byte, []) + before.get(byte, [])
        last = byte
    return "".join(out) + source[last:].decode(errors="replace")


def _around(changes: list[Change]) -> tuple[str, str]:
    """What goes before and after an expression that has changes, with consecutive numbers."""
    cast = f"(decltype({SWITCH}_value({changes[0].old})))"
    chain = "".join(f"{SWITCH}() == {each.number}u ? {cast}({each.new}) : " for each in changes[:-1])
    chain += f"{cast}({changes[-1].new})"
    return f"({SWITCH}() - {changes[0].number}u < {len(changes)}u ? ({chain}) : {cast}(", "))"
