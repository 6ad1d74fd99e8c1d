"""Finds operators that compute with a Python program's data in numpy, which runs on the processor.

The rules of python_rules.py find numpy's functions by their names, but an operator such as `*` has no name. So this
module follows whole arrays through the program's text: from the calls that read them (`np.fromfile`, `np.frombuffer`,
`to_numpy`), through assignments, containers, attributes, and the functions and classes of the file, until nothing new
is found. Each function has its own variables. The order of statements is ignored.

A read of a few numbers or of integers yields no data, because programs compute with the sizes in a header. Arithmetic
inside `print(…)` or before `.max()` is allowed, as in `abs(y - right).max()`: a program may compare its results, and
the outcome is only one number.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from grader.programs.data_kinds import BITS, DATA, NONE, Kind, element, joined, most, shallow

_INTEGERS = re.compile(r"(?:np\.|numpy\.)?u?int\d*|np\.byte|'[<>=|]?(?:u?int\d+|[biuBHIhl]\d?)'")
_MOST_ROUNDS = 20
"""Limit on the passes over the program; each follows values through at least one more call."""
_FEW = 64
"""A read of at most this many numbers is taken for a header."""
_READS = frozenset({"frombuffer", "fromfile", "fromstring", "memmap", "to_numpy"})
_NO_ARRAY = frozenset(
    {"data_ptr", "dtype", "flags", "itemsize", "nbytes", "ndim", "numel", "shape", "size", "stride", "strides"}
)
_SINGLE = frozenset({"all", "any", "bool", "int", "item", "len", "max", "min", "print", "str"})
"""Functions and methods that return no array. `max` and `min` count only as methods without arguments."""
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPUTES = re.compile(
    r"add|cbrt|cum(?:prod|sum)|cumulative_\w+|(?:true_|floor_)?divide|divmod|f?mod|geomspace|logspace|mul|multiply|pow|"
    r"prod|reciprocal|remainder|sqrt|square|sub|subtract|truediv"
)
"""Arithmetic functions of numpy and of Python's module `operator`, and built-in ones."""
_Function = ast.FunctionDef | ast.Lambda
_Scope = tuple[str, ...]


def host_arithmetic(tree: ast.Module) -> list[tuple[int, str]]:
    """(line number, description) of every line that computes with whole arrays of data."""
    flow = _Flow(tree)
    for _ in range(_MOST_ROUNDS):
        flow.grew = False
        flow.follow(tree.body, ())
        for functions in flow.functions.values():
            for scope, function in functions:
                flow.enter(scope, function)
        if not flow.grew:
            break
    return sorted(flow.found)


class _Flow:
    def __init__(self, tree: ast.Module) -> None:
        self.functions: dict[str, list[tuple[_Scope, _Function]]] = {}
        for scope, function in _functions(tree.body, ()):
            self.functions.setdefault(scope[-1], []).append((scope, function))
        self.classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        self.kinds: dict[tuple[_Scope, str], Kind] = {}
        """By scope and name. Attributes and results of functions have the global scope and the names `.name` and
        `name()`."""
        self.found: set[tuple[int, str]] = set()
        self.grew = True
        self.other_names = dict(_other_names(tree))
        self.inside = 0
        """The number of calls of functions in `_SINGLE` that enclose the current expression."""

    # ---- names ----------------------------------------------------------------------------------------------------

    def look_up(self, scope: _Scope, name: str) -> Kind:
        while (scope, name) not in self.kinds and scope:
            scope = scope[:-1]
        return self.kinds.get((scope, name), NONE)

    def put(self, scope: _Scope, name: str, kind: Kind) -> None:
        before = self.kinds.get((scope, name))
        after = joined(before or NONE, shallow(kind))
        if after != before:
            self.kinds[scope, name] = after
            self.grew = True

    def bind(self, target: ast.AST, kind: Kind, scope: _Scope) -> None:
        match target:
            case ast.Name(id=name):
                self.put(scope, name, kind)
            case ast.Attribute(attr=name):
                self.put((), f".{name}", kind)
            case ast.Subscript(value=value, slice=index):
                self.bind(value, (kind,) if _is_text(index) else kind, scope)
            case ast.Starred(value=value):
                self.bind(value, kind, scope)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for number, part in enumerate(parts):
                    exact = not any(isinstance(each, ast.Starred) for each in parts)
                    self.bind(part, element(kind, number if exact else None), scope)

    def enter(self, scope: _Scope, function: _Function) -> None:
        places = [*function.args.posonlyargs, *function.args.args]
        for place, value in zip(reversed(places), reversed(function.args.defaults), strict=False):
            self.put(scope, place.arg, self.kind(value, scope[:-1]))
        if isinstance(function, ast.FunctionDef):
            self.follow(function.body, scope)
        else:
            self.put((), f"{scope[-1]}()", self.kind(function.body, scope))

    # ---- statements -----------------------------------------------------------------------------------------------

    def follow(self, body: Iterable[ast.AST], scope: _Scope) -> None:
        for node in body:
            match node:
                case ast.FunctionDef():
                    pass  # `enter` follows the functions that are not kernels
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        self.bind(target, self.kind(value, scope), scope)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self.bind(target, self.kind(value, scope), scope)
                case ast.AugAssign(target=target, op=op, value=value):
                    self.compute(node.lineno, op, self.kind(target, scope), self.kind(value, scope))
                    self.bind(target, self.kind(value, scope), scope)
                case ast.For(target=target, iter=values, body=inner, orelse=rest):
                    self.bind(target, element(self.kind(values, scope)), scope)
                    self.follow([*inner, *rest], scope)
                case ast.Return(value=ast.expr() as value) if scope:
                    self.put((), f"{scope[-1]}()", self.kind(value, scope))
                case ast.expr():
                    self.kind(node, scope)
                case _:
                    self.follow(ast.iter_child_nodes(node), scope)

    def compute(self, line: int, op: ast.operator, *kinds: Kind) -> None:
        if DATA in kinds and isinstance(op, _ARITHMETIC) and not self.inside:
            self.found.add((line, "computes with whole arrays"))

    # ---- expressions ----------------------------------------------------------------------------------------------

    def kind(self, node: ast.AST, scope: _Scope) -> Kind:
        match node:
            case ast.Name(id=name):
                return self.look_up(scope, name)
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                return tuple(self.kind(part, scope) for part in parts)
            case ast.Dict(values=parts):
                return (most(self.kind(part, scope) for part in parts),)
            case (
                ast.ListComp(generators=generators)
                | ast.GeneratorExp(generators=generators)
                | ast.SetComp(generators=generators)
                | ast.DictComp(generators=generators)
            ):
                scope = (*scope, f"in:{node.lineno}:{node.col_offset}")
                for each in generators:
                    self.bind(each.target, element(self.kind(each.iter, scope)), scope)
                    self.follow(each.ifs, scope)
                return (self.kind(node.value if isinstance(node, ast.DictComp) else node.elt, scope),)
            case ast.Subscript(value=value, slice=index):
                self.kind(index, scope)
                kind = self.kind(value, scope)
                if isinstance(index, ast.Slice):
                    return kind
                return element(kind, index.value if isinstance(index, ast.Constant) else None)
            case ast.Attribute(value=value, attr=name):
                kind = self.kind(value, scope)
                return NONE if name in _NO_ARRAY else joined(kind, self.look_up((), f".{name}"))
            case ast.NamedExpr(target=target, value=value):
                kind = self.kind(value, scope)
                self.bind(target, kind, scope)
                return kind
            case ast.BinOp(left=left, op=op, right=right):
                kinds = self.kind(left, scope), self.kind(right, scope)
                if not _is_text(left):  # `"…" % values` formats text
                    self.compute(node.lineno, op, *kinds)
                return joined(*kinds)
            case ast.Lambda():
                return NONE
            case ast.Yield(value=ast.expr() as value) if scope:
                self.put((), f"{scope[-1]}()", (self.kind(value, scope),))
                return NONE
            case ast.Call():
                return self.call(node, scope)
            case ast.IfExp(test=test, body=first, orelse=second):
                self.kind(test, scope)
                return joined(self.kind(first, scope), self.kind(second, scope))
            case ast.Compare() | ast.JoinedStr():
                self.follow(ast.iter_child_nodes(node), scope)
                return NONE
            case _:
                return most(self.kind(part, scope) for part in ast.iter_child_nodes(node))

    def call(self, node: ast.Call, scope: _Scope) -> Kind:
        function = node.func
        path = _path(function)
        path = self.other_names.get(path[0], path) if len(path) == 1 else path
        name = path[-1] if path else function.attr if isinstance(function, ast.Attribute) else _name(function)
        of = function.value if isinstance(function, ast.Attribute) else None
        single = name in _SINGLE and (name not in ("max", "min") or (of is not None and not node.args + node.keywords))
        self.inside += single
        arguments = [self.kind(each, scope) for each in node.args]
        named = {each.arg: self.kind(each.value, scope) for each in node.keywords}
        owner = self.kind(of, scope) if of is not None else NONE
        self.inside -= single
        given = most([*arguments, *named.values()])
        if name in self.functions:
            return self.hand_over(name, arguments, named, method=of is not None)
        if name in self.classes:
            self.fill(self.classes[name], arguments, named)
            self.hand_over("__init__", arguments, named, method=True)
            return NONE
        for each in node.args:
            self.hand_over(_name(each), [given] * len(arguments), {}, method=False)
        of_numpy = path[:1] in (["np"], ["numpy"])
        known = of_numpy or path[:1] == ["operator"] or len(path) == 1
        if given == DATA and not self.inside and known and any(map(_COMPUTES.fullmatch, path)):
            self.found.add((node.lineno, f"computes with whole arrays by {ast.unparse(function)}"))
        if of is not None and given and name in ("append", "extend", "insert", "setdefault", "update"):
            self.bind(of, (given,), scope)
        match name:
            case "to_numpy":
                return DATA
            case _ if name in _READS:
                return _read(node)
            case "unpack" | "unpack_from" if not (node.args and isinstance(node.args[0], ast.Constant)):
                return (DATA,)
            case "view" if owner == BITS and node.args and not _INTEGERS.fullmatch(ast.unparse(node.args[0])):
                return DATA
            case "zip":
                return (tuple(element(kind) for kind in arguments),)
            case "enumerate" if arguments:
                return ((NONE, element(arguments[0])),)
            case "iter" | "list" | "reversed" | "sorted" | "tuple" if arguments:
                return arguments[0]
            case "float" if any(_is_one_number(each) for each in node.args):
                return NONE
            case "mean" | "sum" if of is not None and not node.args + node.keywords:
                return NONE
            case "abs" | "float" | "max" | "min" | "next" | "sum" if of is None:
                return given
        if single or name in _NO_ARRAY:
            return NONE
        return given if of_numpy else owner

    def hand_over(
        self, name: str, arguments: Sequence[Kind], named: Mapping[str | None, Kind], *, method: bool
    ) -> Kind:
        """Bind the parameters of the functions with this name to the arguments. Returns the kind of their result."""
        for scope, function in self.functions.get(name, ()):
            places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            places = places[1:] if method and places[:1] in (["self"], ["cls"]) else places
            for parameter, kind in [*zip(places, arguments, strict=False), *named.items()]:
                self.put(scope, parameter or "", kind)
        return self.look_up((), f"{name}()")

    def fill(self, made: ast.ClassDef, arguments: Sequence[Kind], named: Mapping[str | None, Kind]) -> None:
        """Bind the fields of a new object of this class to the arguments, as a dataclass does."""
        fields = [node.target for node in made.body if isinstance(node, ast.AnnAssign)]
        names = [field.id for field in fields if isinstance(field, ast.Name)]
        for name, kind in [*zip(names, arguments, strict=False), *named.items()]:
            self.put((), f".{name}", kind)


def _functions(body: Iterable[ast.AST], scope: _Scope) -> Iterator[tuple[_Scope, _Function]]:
    """The functions that run on the processor, each with its scope. The scope ends with the function's name."""
    for node in body:
        inner, parts = scope, ast.iter_child_nodes(node)
        match node:
            case ast.FunctionDef(name=name):
                if any(_last_name(decorator) == "jit" for decorator in node.decorator_list):
                    continue
                inner = (*scope, name)
                yield inner, node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as made):
                yield (*scope, name), made
            case ast.Lambda():
                yield (*scope, _name(node)), node
        yield from _functions(parts, inner)


def _name(node: ast.expr) -> str:
    """The name of a function where it is used; '' for any other expression."""
    if isinstance(node, ast.Lambda):
        return f"lambda:{node.lineno}:{node.col_offset}"
    return node.id if isinstance(node, ast.Name) else ""


def _other_names(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """The other names that functions get by `import … as` and by `=`, each with the function's original path."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(names=names):
                yield from ((alias.asname, [alias.name]) for alias in names if alias.asname)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() | ast.Name() as value):
                path = _path(value)
                if path and (path[-1] in _READS or _COMPUTES.fullmatch(path[-1])):
                    yield name, path


def _last_name(decorator: ast.AST) -> str:
    """`jit` for the decorators `triton.jit` and `triton.jit(debug=True)`."""
    tree = decorator.func if isinstance(decorator, ast.Call) else decorator
    return tree.attr if isinstance(tree, ast.Attribute) else getattr(tree, "id", "")


def _path(node: ast.expr) -> list[str]:
    """The names of `name.attribute...`; [] for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _read(call: ast.Call) -> Kind:
    """The kind of the array that np.fromfile or np.frombuffer returns; NONE if it is taken for a header."""
    named = {each.arg: each.value for each in call.keywords}
    type_ = named.get("dtype", call.args[1] if len(call.args) > 1 else None)
    count = named.get("count", call.args[2] if len(call.args) > 2 else None)
    size: ast.AST | None = None
    match call.args[:1]:
        case [ast.Subscript(slice=ast.Slice(upper=size))] | [ast.Call(func=ast.Attribute(attr="read"), args=[size])]:
            pass  # the read has a limit of `size` bytes
    for limit, found in ((_FEW, count), (8 * _FEW, size)):
        if isinstance(found, ast.Constant) and isinstance(found.value, int) and 0 <= found.value <= limit:
            return NONE
    return BITS if type_ is not None and _INTEGERS.fullmatch(ast.unparse(type_)) else DATA


def _is_one_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
