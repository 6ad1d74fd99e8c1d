"""Reads the C++ of a submission, in the room: makes the values of source.py from tree-sitter's trees.

What is read is as long and as nested as its author likes, and so is every search in it. So a `Source` never leaves the
room: a question about a submission's source is a confined function of its files that answers with a few values, and
`asked` asks it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any, Concatenate, ParamSpec, TypeVar

from tree_sitter import Node

from grader.cpp.source import (
    MAX_ITEMS,
    MAX_TEXT,
    Assigned,
    Branch,
    Call,
    Function,
    Item,
    Launch,
    Loop,
    Quotient,
    Source,
    Use,
    Variable,
)
from grader.cpp.tree import depth_of, end_of, function_declarator, line_of, name_of, named, parsed, text_of, walk
from grader.sandbox.room import Exceeded, Unreadable, inside

Files = Sequence[tuple[str, bytes]]
"""The files of a submission: names and contents."""
More = ParamSpec("More")
Answer = TypeVar("Answer")
QUESTIONS_S = 120.0
"""Wall time for all questions about one submission's source, each of which has its own limit of processor time. An
honest program's take less than 0.1 s, on a busy machine a few times as long."""
SUFFIXES = frozenset({".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hxx", ".inl"})
_SPACES = {"__global__": "global", "__device__": "device"}
_QUALIFIERS = frozenset(
    {"const", "static", "volatile", "__shared__", "extern", "constexpr", "register", "__restrict__"}
)
_IN_VALUES = frozenset({"parenthesized_expression", "binary_expression", "unary_expression"})
_MATHEMATICAL = frozenset(
    f"{name}{end}" for name in ("pow", "exp", "sqrt", "rsqrt", "log", "exp2") for end in ("", "f")
)
_LEAVE = frozenset({"return_statement", "break_statement", "continue_statement"})
_LOOPS = frozenset({"for_statement", "while_statement", "do_statement", "for_range_loop"})


def asked(
    otherwise: Answer,
    question: Callable[Concatenate[Files, More], Answer],
    files: Files,
    *arguments: More.args,
    **named: More.kwargs,
) -> Answer:
    """What the confined function `question` answers about a submission's files, or `otherwise` if it exceeds its
    limits. Nothing more is asked about files that exceeded a limit, or about which QUESTIONS_S have been spent: every
    failed test asks."""
    spent = _spent(tuple(files))
    if spent[0] > QUESTIONS_S:
        return otherwise
    began = time.monotonic()
    try:
        return question(files, *arguments, **named)
    except Exceeded:
        spent[0] = float("inf")
        return otherwise
    except Unreadable:
        return otherwise
    finally:
        spent[0] += time.monotonic() - began


@lru_cache(maxsize=16)
def _spent(files: tuple[tuple[str, bytes], ...]) -> list[float]:
    """The seconds that questions about these files took, in a list that `asked` changes."""
    return [0.0]


def cpp_files(files: Files) -> tuple[tuple[str, bytes], ...]:
    """The C++ files among `files`."""
    return tuple((name, content) for name, content in files if PurePosixPath(name).suffix in SUFFIXES)


def read_source(files: Files) -> Source:
    """Read the C++ files among `files`. Only for confined functions."""
    assert inside(), "a Source is read, searched and forgotten in the room: see `asked`"
    return _read(cpp_files(files))


@lru_cache(maxsize=1)
def _read(files: tuple[tuple[str, bytes], ...]) -> Source:
    found: dict[str, list[Any]] = {name: [] for name in Source.model_fields}
    for file, content in files:
        reading = _File(file, found)
        for node in walk(parsed(content)):
            reading.take(node)
    return Source(**{name: tuple(items[:MAX_ITEMS]) for name, items in found.items()})


class _File:
    """One file's nodes, taken in the order of the source, added to the lists of `found`."""

    def __init__(self, file: str, found: dict[str, list[Any]]) -> None:
        self.file, self.found = _short(file), found
        self.around: list[tuple[int, str]] = []
        """The functions that are open: the byte at which each ends, and its name."""

    def take(self, node: Node) -> None:
        while self.around and node.start_byte >= self.around[-1][0]:
            self.around.pop()
        match node.type:
            case "function_definition":
                self._function(node)
            case "call_expression":
                self._call(node)
            case "if_statement":
                self._branch(node)
            case "declaration" | "field_declaration":
                self._declaration(node)
            case "assignment_expression":
                self._assignment(node)
            case "update_expression":
                target = node.child_by_field_name("argument")
                self._add("assignments", Assigned, node, **_target(target), operator="+=", value="1")
            case "subscript_expression" if node.parent is None or node.parent.type != "subscript_expression":
                self._use(node)
            case "return_statement":
                self._add("returns", Item, node)
            case "binary_expression" if text_of(node.child_by_field_name("operator")) == "/":
                left, right = (_short(text_of(node.child_by_field_name(side))) for side in ("left", "right"))
                self._add("quotients", Quotient, node, left=left, right=right, real=_becomes_real(node))
            case kind if kind in _LOOPS:
                self._loop(node)

    def _add(self, where: str, kind: type[Item], node: Node, **facts: Any) -> None:
        end = facts.pop("end", end_of(node))
        function = self.around[-1][1] if self.around else ""
        self.found[where].append(kind(file=self.file, line=line_of(node), end=end, function=function, **facts))

    def _function(self, node: Node) -> None:
        declarator = function_declarator(node)
        if declarator is None:
            return
        name = name_of(declarator.child_by_field_name("declarator"))
        head = text_of(node).partition("{")[0]
        space = next((space for word, space in _SPACES.items() if word in head.split()), "host")
        parameters = tuple(
            (_short(_parameter_type(each)), _short(name_of(each.child_by_field_name("declarator"))))
            for each in named(declarator.child_by_field_name("parameters"))
            if each.type == "parameter_declaration"
        )
        self._add("functions", Function, node, name=_short(name), space=space, parameters=parameters[:128])
        self.around.append((node.end_byte, _short(name)))

    def _loop(self, node: Node) -> None:
        condition = node.child_by_field_name("condition")
        steps = (node.child_by_field_name("initializer"), node.child_by_field_name("update"))
        texts = tuple(_short(text_of(step)) for step in steps) if node.type == "for_statement" else ()
        self._add("loops", Loop, node, condition=_short(text_of(condition)), steps=texts)

    def _branch(self, node: Node) -> None:
        condition, then = node.child_by_field_name("condition"), node.child_by_field_name("consequence")
        if then is None:
            return
        last = then.named_children[-1] if then.type == "compound_statement" and then.named_children else then
        text = text_of(condition).removeprefix("(").removesuffix(")")
        self._add("branches", Branch, node, condition=_short(text), leaves=last.type in _LEAVE, end=end_of(then))

    def _call(self, node: Node) -> None:
        function = node.child_by_field_name("function")
        arguments = tuple(_short(text_of(each)) for each in named(node.child_by_field_name("arguments")))[:64]
        configuration = next((each for each in node.children if each.type == "kernel_call_syntax"), None)
        name = _short(name_of(function))
        if configuration is not None:
            template = next((each for each in named(function) if each.type == "template_argument_list"), None)
            self._add(
                "launches",
                Launch,
                node,
                name=name,
                template=tuple(_short(text_of(each)) for each in named(template))[:64],
                configuration=tuple(_short(text_of(each)) for each in named(configuration))[:64],
                arguments=arguments,
            )
        elif name:
            parent = node.parent
            while parent is not None and parent.type in ("cast_expression", "parenthesized_expression"):
                parent = parent.parent
            given = ""
            if parent is not None and parent.type in ("init_declarator", "assignment_expression"):
                given = name_of(parent.child_by_field_name("declarator") or parent.child_by_field_name("left"))
            self._add("calls", Call, node, name=name, arguments=arguments, given=_short(given))

    def _declaration(self, node: Node) -> None:
        words = text_of(node).partition("=")[0].split()
        kind = text_of(node.child_by_field_name("type"))
        for declarator in node.children_by_field_name("declarator"):
            plain, value = declarator, None
            if plain.type == "function_declarator":
                continue
            if plain.type == "init_declarator":
                value = plain.child_by_field_name("value")
                plain = plain.child_by_field_name("declarator") or plain
            pointers = depth_of(plain)
            name = name_of(plain)
            if name:
                self._add(
                    "variables",
                    Variable,
                    node,
                    name=_short(name),
                    type=_short(" ".join([*(["__managed__"] if "__managed__" in words else []), kind])),
                    pointers=pointers,
                    value=_short(text_of(value)),
                    shared="__shared__" in words,
                )

    def _assignment(self, node: Node) -> None:
        target, value = node.child_by_field_name("left"), node.child_by_field_name("right")
        operator = text_of(node.child_by_field_name("operator")) or "="
        self._add(
            "assignments", Assigned, node, **_target(target), operator=_short(operator), value=_short(text_of(value))
        )

    def _use(self, node: Node) -> None:
        name = name_of(node)
        text = text_of(node)
        if name and name in text:
            self._add("uses", Use, node, name=_short(name), index=_short(text[text.index(name) + len(name) :].strip()))


def _becomes_real(node: Node) -> bool:
    """Whether an expression is, with its parentheses, signs and factors, the value of a real variable or an argument of
    a function such as powf."""
    above = node.parent
    while above is not None and above.type in _IN_VALUES:
        above = above.parent
    if above is not None and above.type == "init_declarator":
        return above.parent is not None and text_of(above.parent.child_by_field_name("type")) in ("float", "double")
    call = above.parent if above is not None and above.type == "argument_list" else None
    return call is not None and name_of(call.child_by_field_name("function")) in _MATHEMATICAL


def _parameter_type(parameter: Node) -> str:
    """ "const float*" """
    before = [text_of(each) for each in parameter.children if each.type == "type_qualifier"]
    stars = "*" * depth_of(parameter.child_by_field_name("declarator"))
    return " ".join([*before, text_of(parameter.child_by_field_name("type"))]) + stars


def _target(node: Node | None) -> dict[str, str]:
    return {"name": _short(name_of(node)), "target": _short(text_of(node))}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "…"
