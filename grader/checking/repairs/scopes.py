"""The variables of a source, where each is in scope, and the types of expressions, as far as changes need them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tree_sitter import Node

from grader.cpp.tree import depth_of, function_declarator, name_of, named, text_of, walk

_WHOLE = frozenset({"int", "unsigned", "size_t", "long", "short", "ptrdiff_t", "uint"} | {
    "unsigned int", "long long", "unsigned long", "unsigned long long",
    "int32_t", "uint32_t", "int64_t", "uint64_t",
})  # fmt: skip
_REAL = frozenset({"float", "double"})
REAL_CALLS = frozenset(
    f"{name}{end}"
    for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "fmax", "fmin", "pow", "fabs", "fma", "tanh")
    for end in ("", "f")
) | {"__expf", "__logf", "__fdividef"}
_REAL_NAMES = frozenset({"INFINITY", "FLT_MAX", "FLT_MIN", "HUGE_VALF", "CUDART_INF_F"})
BUILT_IN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim"})
_SCOPES = frozenset({
    "compound_statement", "for_statement", "translation_unit", "namespace_definition", "declaration_list",
    "if_statement", "while_statement", "case_statement", "field_declaration_list",
})  # fmt: skip
_DECLARES = frozenset({"declaration", "field_declaration", "parameter_declaration", "optional_parameter_declaration"})

_NUMERAL = re.compile(r"0[xX][0-9a-fA-F]+[uUlL]*|\d+[uUlL]*")
Type = tuple[str, int]
"""("whole", "real", a type's name or "" if unknown; the pointers and dimensions that it goes through)"""
UNKNOWN: Type = ("", 0)
WHOLE: Type = ("whole", 0)
REAL: Type = ("real", 0)


@dataclass(frozen=True)
class Variable:
    """A variable in scope from byte `start` to byte `end`. `owner` is the node that declares it and its siblings: a
    list of parameters, a block. `value` is what a constant is initialised with, or its name."""

    name: str
    type: Type
    start: int
    end: int
    owner: int
    value: Node | None = None


def plain_type(text: str) -> Type:
    """The type that C++ text names: `const float*` is ("real", 1)."""
    name = " ".join(re.sub(r"\b(?:const|volatile|static|inline|__restrict__)\b|\bstd::|[*&]", " ", text).split())
    return ("whole" if name in _WHOLE else "real" if name in _REAL else name), text.count("*")


class Scopes:
    """The declarations of one source."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.variables: dict[str, list[Variable]] = {}
        self.fields: dict[str, tuple[Type, int]] = {}
        """The type of a field, and the structure that it belongs to."""
        self.functions: dict[str, tuple[Type, tuple[bool, ...]]] = {}
        """The result's type, and for each parameter whether it is a reference that can be changed."""
        self.structures: dict[int, str] = {}
        """The names of the structures that are not classes with methods, by their fields' owner."""
        self.macros, self.numbers = set[str](), dict.fromkeys(_REAL_NAMES, REAL)  # and the types of these
        for node in walk(self.root):
            if node.type in ("enumerator", "preproc_def"):
                value = text_of(node.child_by_field_name("value")).strip()
                if node.type == "enumerator" or _NUMERAL.fullmatch(value):
                    self.numbers[text_of(node.child_by_field_name("name"))] = WHOLE
            if node.type in ("preproc_def", "preproc_function_def"):
                self.macros.add(text_of(node.child_by_field_name("name")))
            elif node.type == "function_definition":
                self._function(node)
            elif node.type == "struct_specifier" and (body := node.child_by_field_name("body")) is not None:
                self.structures[body.id] = text_of(node.child_by_field_name("name"))
            elif node.type in _DECLARES:
                self._declare(node)

    def _function(self, node: Node) -> None:
        declarator = function_declarator(node)
        if declarator is None:
            return
        kind, _ = plain_type(text_of(node.child_by_field_name("type")))
        texts = [text_of(each) for each in named(declarator.child_by_field_name("parameters"))]
        changed = tuple("&" in text and "const" not in text for text in texts)
        type = kind, depth_of(node.child_by_field_name("declarator"))
        self.functions[name_of(declarator.child_by_field_name("declarator"))] = type, changed

    def _declare(self, node: Node) -> None:
        is_parameter = "parameter" in node.type
        scope, scopes = node.parent, {"function_definition", "lambda_expression"} if is_parameter else _SCOPES
        while scope is not None and scope.type not in scopes:
            scope = scope.parent
        if scope is None:
            return
        owner = node.parent if is_parameter and node.parent is not None else scope
        kind, _ = plain_type(text_of(node.child_by_field_name("type")))
        constant = re.search("const|__device__", text_of(node).partition("=")[0].partition("(")[0])
        for declarator in node.children_by_field_name("declarator"):
            name = name_of(declarator)
            if not name or "function_declarator" in (declarator.type, *(c.type for c in declarator.children)):
                continue
            value, type = declarator.child_by_field_name("value"), (kind, depth_of(declarator))
            if kind == "auto" and value is not None:
                type = self.type_of(value)
            if node.type == "field_declaration":
                self.fields[name] = type, owner.id
            fixed = (value or declarator) if constant else None
            made = Variable(name, type, declarator.end_byte, scope.end_byte, owner.id, fixed)
            self.variables.setdefault(name, []).append(made)

    def find(self, name: str, at: int) -> Variable | None:
        """The variable that `name` means at byte `at`."""
        among = (each for each in self.variables.get(name, ()) if each.start <= at < each.end)
        return max(among, key=lambda each: each.start, default=None)

    def in_scope(self, type: Type, at: int) -> list[Variable]:
        """The variables of a type at byte `at`, the nearest first, without those that only the host knows."""
        visible = (v for name in self.variables if (v := self.find(name, at)) is not None and v.type == type)
        return sorted((v for v in visible if v.value or v.end < self.root.end_byte), key=lambda v: -v.start)

    def type_of(self, node: Node) -> Type:
        match node.type:
            case "number_literal":
                return WHOLE if _NUMERAL.fullmatch(text_of(node)) else REAL
            case "identifier":
                name = text_of(node)
                variable = self.find(name, node.start_byte)
                return variable.type if variable is not None else self.numbers.get(name, UNKNOWN)
            case "parenthesized_expression":
                return self.type_of(node.named_children[0]) if node.named_children else UNKNOWN
            case "subscript_expression":
                kind, depth = self._type_of(node, "argument")
                return (kind, depth - 1) if depth else UNKNOWN
            case "field_expression":
                return self._field(node)
            case "binary_expression":
                return self._binary(node)
            case "conditional_expression":
                return self._type_of(node, "consequence")
            case "cast_expression":
                return plain_type(text_of(node.child_by_field_name("type")))
            case "unary_expression" | "assignment_expression":
                return self._type_of(node, "argument" if node.type == "unary_expression" else "left")
            case "pointer_expression":
                kind, depth = self._type_of(node, "argument")
                return kind, depth - 1 if text_of(node).startswith("*") else depth + 1
            case "sizeof_expression":
                return WHOLE
            case "call_expression":
                return self._call(node)
        return UNKNOWN

    def _type_of(self, node: Node, field: str) -> Type:
        inner = node.child_by_field_name(field)
        return self.type_of(inner) if inner is not None else UNKNOWN

    def _field(self, node: Node) -> Type:
        if text_of(node.child_by_field_name("argument")) in BUILT_IN:
            return WHOLE
        name = text_of(node.child_by_field_name("field"))
        if name in ("x", "y", "z", "w"):
            kind, _ = self._type_of(node, "argument")
            return REAL if kind.startswith("float") else WHOLE if kind in ("dim3", "uint3", "int2") else UNKNOWN
        return self.fields.get(name, (UNKNOWN, 0))[0]

    def _binary(self, node: Node) -> Type:
        if operator_of(node) in ("<", ">", "<=", ">=", "==", "!=", "&&", "||"):
            return "bool", 0
        left, right = self._type_of(node, "left"), self._type_of(node, "right")
        if left[1] or right[1]:
            return left if left[1] else right
        if left == right == WHOLE:
            return WHOLE
        return REAL if "real" in (left[0], right[0]) and "" not in (left[0], right[0]) else UNKNOWN

    def _call(self, node: Node) -> Type:
        called = node.child_by_field_name("function")
        name, arguments = name_of(called) or text_of(called), arguments_of(node)
        if plain_type(name)[0] in ("whole", "real"):
            return plain_type(name)
        if cast := re.fullmatch(r"(?:static|reinterpret)_cast\s*<(.*)>", text_of(called)):
            return plain_type(cast[1])
        if name in self.functions:
            return self.functions[name][0]
        if name in REAL_CALLS:
            return REAL
        if name.startswith("__shfl") and len(arguments) > 1:
            return self.type_of(arguments[1])
        return self.type_of(arguments[0]) if name in ("max", "min", "__ldg") and arguments else UNKNOWN


def operator_of(node: Node) -> str:
    return text_of(node.child_by_field_name("operator"))


def arguments_of(call: Node) -> list[Node]:
    return named(call.child_by_field_name("arguments"))
