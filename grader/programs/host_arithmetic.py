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
_FLOATS = re.compile(r"[efd]")
_MOST_ROUNDS = 20
"""Limit on the passes over the program; each follows values through at least one more call."""
_FEW = 64
"""A read of at most this many numbers is taken for a header."""
_READS = frozenset({"frombuffer", "fromfile", "fromstring", "memmap", "to_numpy"})
_WHOLE_READS = frozenset({"numpy", "to_numpy"})
"""Functions and methods that return whole arrays whatever their arguments are."""
_TAKE_OUT = frozenset({"get", "pop", "popitem", "popleft"})
_PASS_ON = frozenset({"copy", "filter", "functools", "itertools", "map", "operator"})
"""Modules and functions whose results contain what they are given."""
_NO_ARRAY = frozenset(
    {"data_ptr", "dtype", "flags", "itemsize", "nbytes", "ndim", "numel", "shape", "size", "stride", "strides"}
)
_SINGLE = frozenset({"all", "any", "bool", "int", "item", "len", "max", "min", "print", "str"})
"""Functions and methods that return no array. `max` and `min` count only as methods without arguments."""
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_COMPUTES = re.compile(
    r"add|cbrt|cum(?:prod|sum)|cumulative_\w+|(?:true_|floor_)?divide|divmod|f?mod|geomspace|logspace|mul|multiply|pow|"
    r"prod|reciprocal|remainder|sqrt|square|sub|subtract|truediv|i(?:add|sub|mul|pow|mod|truediv|floordiv)"
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
        self.kernels = set(_kernels(tree))
        names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
        self.assigned = {node.id for node in names}
        self.formats = dict(_formats(tree))
        self.repeated = 0
        """The number of loops and comprehensions that enclose the current expression."""
        self.outside = set(_declared_outside(tree))
        """(function, name) of the variables that a function declares as global or nonlocal."""
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
        while scope and (scope[-1], name) in self.outside:
            scope = scope[:-1]
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
        defaults = [*zip(reversed(places), reversed(function.args.defaults), strict=False)]
        named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        defaults += [(place, value) for place, value in named if value is not None]
        for place, value in defaults:
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
                    self.repeat(inner, scope)
                    self.follow(rest, scope)
                case ast.While(test=test, body=inner, orelse=rest):
                    self.repeat([test, *inner], scope)
                    self.follow(rest, scope)
                case ast.ClassDef(keywords=keywords):
                    given = most(self.kind(each.value, scope) for each in keywords)
                    self.hand_over("__init_subclass__", [given] * len(keywords), {}, method=True)
                    self.follow(ast.iter_child_nodes(node), scope)
                case ast.With(items=items, body=inner):
                    for item in items:
                        kind = self.kind(item.context_expr, scope)
                        if isinstance(item.context_expr, ast.Call):
                            kind = most([kind, *(self.kind(each, scope) for each in item.context_expr.args)])
                        if item.optional_vars is not None:
                            self.bind(item.optional_vars, kind, scope)
                    self.follow(inner, scope)
                case ast.Match(subject=subject, cases=cases):
                    kind = most([self.kind(subject, scope)])
                    for pattern in (part for case in cases for part in ast.walk(case.pattern)):
                        captured = getattr(pattern, "rest" if isinstance(pattern, ast.MatchMapping) else "name", None)
                        if captured:
                            self.put(scope, captured, kind)
                    self.follow(ast.iter_child_nodes(node), scope)
                case ast.Return(value=ast.expr() as value) if scope:
                    self.put((), f"{scope[-1]}()", self.kind(value, scope))
                case ast.expr():
                    self.kind(node, scope)
                case _:
                    self.follow(ast.iter_child_nodes(node), scope)

    def repeat(self, body: Iterable[ast.AST], scope: _Scope) -> None:
        self.repeated += 1
        self.follow(body, scope)
        self.repeated -= 1

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
                self.repeated += 1
                kind = self.kind(node.value if isinstance(node, ast.DictComp) else node.elt, scope)
                self.repeated -= 1
                return (kind,)
            case ast.Subscript(value=value, slice=index):
                if given := self.kind(index, scope):
                    self.hand_over("__getitem__", [given], {}, method=True)
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
        of_numpy = path[:1] in (["np"], ["numpy"])
        single = name in _SINGLE and (
            name not in ("max", "min") or (of is not None and len(node.args + node.keywords) == of_numpy)
        )
        single = single and not any(
            isinstance(part, ast.NamedExpr) or (isinstance(part, ast.keyword) and part.arg == "out")
            for part in ast.walk(node)
        )
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
        if given and not path and isinstance(function, ast.Subscript) and root_name(function) not in self.kernels:
            self.found.add((node.lineno, f"computes with whole arrays by {ast.unparse(function)}"))
        if given and (isinstance(function, ast.Call) or (len(path) == 1 and name in self.assigned)):
            self.hand_over("__call__", arguments, named, method=True)
        known = of_numpy or path[:1] in (["math"], ["operator"]) or len(path) == 1
        if given == DATA and not self.inside and known and any(map(_COMPUTES.fullmatch, path)):
            self.found.add((node.lineno, f"computes with whole arrays by {ast.unparse(function)}"))
        if of is not None and given and name in ("append", "extend", "insert", "setdefault", "update"):
            self.bind(of, (given,), scope)
        match name:
            case _ if name in _WHOLE_READS or (name == "ndarray" and len(node.args) > 2):
                return DATA
            case "cast" if of is not None and path[:1] != ["typing"]:  # of a memoryview
                return DATA
            case _ if name in _TAKE_OUT and of is not None:
                return element(owner)
            case _ if path[:1] and path[0] in _PASS_ON:
                return given
            case _ if name in _READS:
                return _read(node, few=0 if self.repeated else _FEW)
            case "unpack" | "unpack_from" if not self.is_header(node, of):
                return (DATA,)
            case "view" if owner == BITS and not all(
                _INTEGERS.fullmatch(ast.unparse(each)) for each in (*node.args, *(word.value for word in node.keywords))
            ):
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
        return given if of_numpy or isinstance(function, ast.Call) else owner

    def is_header(self, unpacking: ast.Call, owner: ast.expr | None) -> bool:
        """Whether a call of struct's `unpack` has a format that the file spells out, and reads no floats in a loop."""
        first = unpacking.args[0] if unpacking.args else None
        names = [each.id for each in (first, owner) if isinstance(each, ast.Name)]
        found = [first.value] if isinstance(first, ast.Constant) else [self.formats.get(name) for name in names]
        text = next((each for each in found if isinstance(each, str)), None)
        return text is not None and not (self.repeated and _FLOATS.search(text))

    def hand_over(
        self, name: str, arguments: Sequence[Kind], named: Mapping[str | None, Kind], *, method: bool
    ) -> Kind:
        """Bind the parameters of the functions with this name to the arguments. Returns the kind of their result."""
        for scope, function in self.functions.get(name, ()):
            places = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
            places = places[1:] if method and places[:1] in (["self"], ["cls"]) else places
            for parameter, kind in [*zip(places, arguments, strict=False), *named.items()]:
                self.put(scope, parameter or "", kind)
            rest = most([*arguments, *named.values()])
            for place in (function.args.vararg, function.args.kwarg):
                if place is not None:
                    self.put(scope, place.arg, (rest,))
            if None in named:  # f(**values)
                for parameter in (*places, *(each.arg for each in function.args.kwonlyargs)):
                    self.put(scope, parameter, element(named[None]))
        return self.look_up((), f"{name}()")

    def fill(self, made: ast.ClassDef, arguments: Sequence[Kind], named: Mapping[str | None, Kind]) -> None:
        """Bind the fields of a new object of this class to the arguments, as a dataclass does."""
        fields = [node.target for node in made.body if isinstance(node, ast.AnnAssign)]
        names = [field.id for field in fields if isinstance(field, ast.Name)]
        for name, kind in [*zip(names, arguments, strict=False), *named.items()]:
            self.put((), f".{name}", kind)


def root_name(node: ast.expr) -> str:
    """The name at the beginning of `name.attribute[index]...`; '' if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _kernels(tree: ast.AST) -> Iterator[str]:
    """The names of the functions that are kernels."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list)):
            yield node.name


def _formats(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that stand for struct's formats, as text or as struct.Struct(text)."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Constant(value=str(text)) | ast.Call(args=[ast.Constant(value=str(text))]),
            ):
                yield name, text


def _declared_outside(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    yield from ((function.name, name) for name in node.names)


def _functions(body: Iterable[ast.AST], scope: _Scope) -> Iterator[tuple[_Scope, _Function]]:
    """The functions that run on the processor, each with its scope. The scope ends with the function's name."""
    for node in body:
        inner, parts = scope, ast.iter_child_nodes(node)
        match node:
            case ast.FunctionDef(name=name):
                if any(_is_jit(decorator) for decorator in node.decorator_list):
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


def _is_jit(decorator: ast.expr) -> bool:
    """Whether it is `triton.jit`, `jit` or `triton.jit(debug=True)`."""
    return _path(decorator.func if isinstance(decorator, ast.Call) else decorator) in (["triton", "jit"], ["jit"])


def _path(node: ast.expr) -> list[str]:
    """The names of `name.attribute...`; [] for any other expression."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.insert(0, node.attr)
        node = node.value
    return [node.id, *names] if isinstance(node, ast.Name) else []


def _read(call: ast.Call, few: int) -> Kind:
    """The kind of the array that np.fromfile or np.frombuffer returns; NONE if it has at most `few` numbers."""
    named = {each.arg: each.value for each in call.keywords}
    type_ = named.get("dtype", call.args[1] if len(call.args) > 1 else None)
    count = named.get("count", call.args[2] if len(call.args) > 2 else None)
    size: ast.AST | None = None
    match call.args[:1]:
        case [ast.Subscript(slice=ast.Slice(upper=size))] | [ast.Call(func=ast.Attribute(attr="read"), args=[size])]:
            pass  # the read has a limit of `size` bytes
    for limit, found in ((few, count), (8 * few, size)):
        if isinstance(found, ast.Constant) and isinstance(found.value, int) and 0 < found.value <= limit:
            return NONE
    return BITS if type_ is not None and _INTEGERS.fullmatch(ast.unparse(type_)) else DATA


def _is_one_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
