"""What the names in a Python program stand for: a function's own variables, or modules.

`separate_locals` renames variables, so that all later steps can ignore scopes: equal names then mean the same variable.
Where Python's scopes are intricate, a variable keeps its name and may be taken for a module, never the reverse.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MOST_STEPS = 8
"""The longest chain of assignments, as in `a = np.random; b = a`, that is followed."""
_PLAIN_VALUE = re.compile(r"(?:math|np|numpy)\.(?:inf|nan|pi|e|tau|u?int\d+|float\d+)|sys\.argv")
"""Parts of modules that cannot be changed, or hurt nothing but the program."""
_NUMBERED = re.compile(r"@\d+")


def separate_locals(tree: ast.AST, keep: Collection[str]) -> None:
    """Number the functions' own variables, as in `best@3`, except those named in `keep`."""
    _Numbering({*keep, *_shared(tree)}).visit(tree)


def text(node: ast.AST) -> str:
    """The code of `node`, without the numbers of variables."""
    return _NUMBERED.sub("", ast.unparse(node))


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def imported_paths(tree: ast.AST) -> dict[str, set[str]]:
    """What each imported name may stand for: {"tl": {"triton.language"}, "jit": {"triton.jit"}}."""
    paths: dict[str, set[str]] = {}
    for node in imports(tree):
        for alias in node.names:
            first = alias.name.partition(".")[0]
            if isinstance(node, ast.ImportFrom):
                paths.setdefault(alias.asname or first, set()).add(f"{node.module}.{alias.name}")
            else:
                paths.setdefault(alias.asname or first, set()).add(alias.name if alias.asname else first)
    return paths


def dotted(node: ast.AST, paths: Mapping[str, Collection[str]]) -> set[str]:
    """What `name.attribute.attribute` may stand for, as in {"triton.language.exp"} for `tl.exp`."""
    match node:
        case ast.Name(id=name):
            return {*paths.get(name, ())}
        case ast.Attribute(value=value, attr=attribute):
            return {f"{path}.{attribute}" for path in dotted(value, paths)}
    return set()


def other_names(tree: ast.AST, imported: Collection[str]) -> set[str]:
    """The names that are assigned parts of modules, as in `random = np.random`."""
    assigned = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=ast.Attribute() | ast.Name() as value):
                assigned += [(target, value) for target in targets]
            case ast.AnnAssign(target=target, value=ast.Attribute() | ast.Name() as value):
                assigned.append((target, value))
            case ast.NamedExpr(target=target, value=ast.Attribute() | ast.Name() as value):
                assigned.append((target, value))
    assigned = [each for each in assigned if not _PLAIN_VALUE.fullmatch(ast.unparse(each[1]))]
    found: set[str] = set()
    for _ in range(_MOST_STEPS):
        known = {*imported, *found}
        found |= {target.id for target, value in assigned if isinstance(target, ast.Name) and root(value) in known}
    return found


def root(node: ast.expr) -> str:
    """The name at the beginning of `name.attribute[index]...`; '' if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def bindings(tree: ast.AST) -> Iterator[str]:
    """The names that the program gives to anything, once for each place."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.alias(name=name, asname=other):
                yield other or name.partition(".")[0]


def _shared(tree: ast.AST) -> Iterator[str]:
    """Names that may stand for the same thing in several scopes, or for an import or a kernel within a function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global | ast.Nonlocal):
            yield from node.names
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            for inner in ast.walk(node):
                match inner:
                    case ast.alias():
                        yield from bindings(inner)
                    case ast.FunctionDef(name=name, decorator_list=[_, *_]) if inner is not node:
                        yield name
                    case ast.ClassDef() if not isinstance(node, ast.ClassDef):  # its body sees global variables
                        yield from bindings(inner)


def _own_names(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """The names of its parameters and of the variables that it sets."""
    given = function.args
    every = (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg)
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    names = (node for node in within_scope(body) if isinstance(node, ast.Name))
    return {argument.arg for argument in every if argument} | {
        node.id for node in names if isinstance(node.ctx, ast.Store | ast.Del)
    }


def within_scope(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function or class, without the parts of inner functions, classes and comprehensions."""
    parts = list(body)
    while parts:
        node = parts.pop()
        yield node
        if not isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef)):
            parts += ast.iter_child_nodes(node)


class _Numbering(ast.NodeVisitor):
    def __init__(self, shared: Collection[str]) -> None:
        self._shared, self._functions = shared, 0
        self._own: list[dict[str, str]] = []
        """For each function around the current node, the new names of its variables."""

    def visit_Name(self, node: ast.Name) -> None:
        node.id = next((own[node.id] for own in reversed(self._own) if node.id in own), node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        own, body = _own_names(node) - {*self._shared}, node.body if isinstance(node.body, list) else [node.body]
        for field, value in ast.iter_fields(node):
            for outside in () if field == "body" else value if isinstance(value, list) else [value]:
                if isinstance(outside, ast.AST):
                    self.visit(outside)
        self._functions += 1
        self._own.append({name: f"{name}@{self._functions}" for name in own})
        for inside in body:
            self.visit(inside)
        self._own.pop()

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef
