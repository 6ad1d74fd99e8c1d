"""tree-sitter's parser for CUDA, and walks over its trees."""

from __future__ import annotations

from collections.abc import Iterator

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

_LANGUAGE = Language(tree_sitter_cuda.language())


def parsed(source: bytes) -> Node:
    """The root of a source's tree. It never fails: what the grammar does not know becomes an ERROR node."""
    return Parser(_LANGUAGE).parse(source).root_node


def walk(root: Node) -> Iterator[Node]:
    """All nodes below `root`, and itself, in the order of the source. Without recursion: a hostile source is nested
    as deeply as it likes."""
    cursor = root.walk()
    while True:
        node = cursor.node
        assert node is not None
        yield node
        if cursor.goto_first_child():
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return


def text_of(node: Node | None) -> str:
    return node.text.decode(errors="replace") if node is not None and node.text is not None else ""


def line_of(node: Node) -> int:
    return node.start_point[0] + 1


def end_of(node: Node) -> int:
    return node.end_point[0] + 1


def name_of(node: Node | None) -> str:
    """The plain name in an expression or declarator: `cudaMalloc` in `(::cudaMalloc<float>)`, `p` in `*&p[3]`; '' if it
    has none, like a call's result."""
    while node is not None:
        match node.type:
            case "identifier" | "field_identifier" | "type_identifier" | "destructor_name" | "operator_name":
                return text_of(node)
            case "template_function" | "qualified_identifier" | "template_method" | "dependent_name":
                inner = node.child_by_field_name("name")
            case "parenthesized_expression" | "parenthesized_declarator" | "reference_declarator":
                inner = next(iter(node.named_children), None)
            case "field_expression":
                inner = node.child_by_field_name("field")
            case "cast_expression":
                inner = node.child_by_field_name("value")
            case "pointer_expression" | "subscript_expression":
                inner = node.child_by_field_name("argument")
            case _:
                inner = node.child_by_field_name("declarator")
        node = inner
    return ""


def named(node: Node | None) -> list[Node]:
    """The named children of a node without comments, such as a call's arguments."""
    return [each for each in node.named_children if each.type != "comment"] if node is not None else []


def depth_of(declarator: Node | None) -> int:
    """The pointers and dimensions of a declarator: 2 for `*p[3]`."""
    depth = 0
    while declarator is not None and declarator.type.endswith("declarator"):
        depth += declarator.type in ("pointer_declarator", "array_declarator", "abstract_pointer_declarator")
        inner = [each for each in declarator.named_children if each.type != "type_qualifier"]
        declarator = declarator.child_by_field_name("declarator") or next(iter(inner), None)
    return depth


def function_declarator(definition: Node) -> Node | None:
    """What declares the name and the parameters of a function."""
    declarator = definition.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(iter(declarator.named_children), None)
    return declarator


_LITERALS = frozenset({"string_literal", "raw_string_literal", "char_literal", "comment"})


def leaves_of(root: Node) -> Iterator[Node]:
    """The tokens of a tree, and its comments. A literal or comment without errors is one token."""
    cursor = root.walk()
    while True:
        node = cursor.node
        assert node is not None
        whole = node.type in _LITERALS and not node.has_error
        if whole:
            yield node
        if not whole and cursor.goto_first_child():
            continue
        if not whole and not node.child_count:
            yield node
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
