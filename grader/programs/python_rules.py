"""Finds forbidden code in the syntax tree of a Python submission.

A CUDA program is compiled before it runs, and can reach only what it was linked with. A Python program reaches
everything in its process: Triton's driver and caches, the frames above it, every clock. So only listed modules may be
imported, all code must be in the file, and modules may be used but not changed. These rules judge a program's text; the
sandbox and the tracer watch what the program does.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

from grader.programs.python_libraries import (
    ATTRIBUTES_OF_KERNELS,
    CLOSED_PARTS,
    FORBIDDEN_ATTRIBUTES,
    FORBIDDEN_OF_NUMPY,
    HIDDEN_MODULES,
    LIBRARY_KERNEL,
    LOADERS_OF_NUMPY,
    OPEN_MODULES,
    USABLE_OF_SYS,
    USABLE_PARTS,
    WITH_ONE_ARGUMENT,
)
from grader.programs.python_names import (
    bindings,
    dotted,
    imported_paths,
    other_names,
    root,
    separate_locals,
    text,
    within_scope,
)

MODULES = frozenset(
    {"__future__", "abc", "argparse", "array", "bisect", "collections", "collections.abc", "contextlib", "copy",
     "dataclasses", "device_arrays", "enum", "fractions", "functools", "heapq", "io", "itertools", "math", "numbers",
     "numpy", "numpy.linalg", "numpy.random", "numpy.testing", "operator", "pathlib", "random", "statistics", "string",
     "struct", "sys", "textwrap", "time", "triton", "triton.language", "triton.language.extra",
     "triton.language.extra.cuda", "triton.language.extra.cuda.libdevice", "triton.language.extra.libdevice",
     "triton.runtime", "triton.testing", "typing", "warnings"}
)  # fmt: skip
"""Modules that a submission may import, in addition to those that the assignment allows."""
_LIBRARY = frozenset(name for name in MODULES if "." not in name) - {"device_arrays", "numpy", "triton"}
"""Those of the standard library."""
_OWN_CODE = "all code must be in the file that is handed in"
_BY_NAME = "attributes and variables must be named in the code, as in args.rows"
_BUILT_INS = {
    **dict.fromkeys(("__import__", "breakpoint", "compile", "eval", "exec"), _OWN_CODE),
    **dict.fromkeys(("delattr", "getattr", "globals", "locals", "setattr", "vars"), _BY_NAME),
}
_NAMES = {"sys": ("sys",), "numpy": ("np", "numpy")}
"""The names that some rules recognise these modules by, which no other module may have."""
_ALLOWED_DUNDERS = frozenset(
    {"__name__", "__file__", "__doc__", "__init__", "__call__", "__enter__", "__exit__", "__post_init__", "__len__",
     "__getitem__", "__iter__", "__next__", "__repr__", "__str__", "__eq__", "__hash__", "__version__", "__author__"}
)  # fmt: skip
_OPERATORS = frozenset(
    {"__abs__", "__add__", "__bool__", "__contains__", "__delitem__", "__float__", "__floordiv__", "__ge__", "__gt__",
     "__iadd__", "__imul__", "__int__", "__isub__", "__le__", "__lt__", "__matmul__", "__mod__", "__mul__",
     "__ne__", "__neg__", "__pow__", "__radd__", "__reversed__", "__rmul__", "__rsub__", "__rtruediv__",
     "__setitem__", "__sub__", "__truediv__"}
)  # fmt: skip
"""Operators that a program's classes may define."""
_CLOCKS = re.compile(r"globaltimer|%clock")
_MANGLED = re.compile(r"__(?!(?:.*__)?(?:@|$))")
"""Within a class, such a name stands for another one."""
_BUILT_IN_CLASSES = frozenset({"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"})
_DATACLASS = frozenset({"dataclasses.dataclass"})
_FIELDS = frozenset({"dataclasses.field", "dataclasses.fields"})
_OPEN = frozenset({"FileIO", "open"})
_OPEN_ARGUMENTS = 3
"""Arguments by their places. The fourth of FileIO, and the eighth of open, is an opener."""
_RECOGNISED = frozenset({*_BUILT_INS, *WITH_ONE_ARGUMENT, *_OPEN, "jit", "np", "numpy", "self", "sys", "type"})
"""Names that rules recognise, also those of variables."""
_PRIVATE = re.compile(r"(?!_experimental|__.*__$)_.*")
"""Names that are internal to a module. `_is_dunder` finds those like `__dict__`."""

Broken = tuple[int, str, str]
"""A line number, what the line does, and why that is forbidden."""
_BEYOND_ARRAYS = f"it {FORBIDDEN_ATTRIBUTES['ctypes']}"
_NOT_LISTED = "this module may not be imported either"
_INTERNAL = "it is internal to a module"
_INTERNALS = "it gives access to Python's internals"
_FIELDS_ARE_CODE = "the names of a dataclass's fields become code; use an attribute other than .name"
_DESCRIPTORS = "files may be opened only by their paths"
_AS_THEY_ARE = "a program must not change modules or kernels"


@dataclass(frozen=True)
class _Program:
    """What the rules need to know about the whole program."""

    paths: Mapping[str, Collection[str]]
    """What each imported name stands for, as in {"tl": {"triton.language"}}."""
    imported: Collection[str]
    """The imported names, and those that are assigned parts of modules."""
    kernels: Collection[str]
    matchable: Collection[str]
    """Classes whose attributes can be matched by place, as in `case Matrix(rows, columns)`."""
    allowed: Collection[str]
    """The modules that it may import."""
    modules: Set[str]
    """These, and parts of Triton that are like modules."""
    changes_fields: bool
    """Whether it uses the fields of dataclasses, whose names become code."""


def broken_rules(source: bytes, allowed: Collection[str], *, inline_assembly: bool = True) -> list[Broken]:
    """The lines that break a rule, in order. `allowed` names the modules that may be imported in addition to MODULES;
    `inline_assembly` says whether kernels may contain PTX. Raises SyntaxError."""
    tree = ast.parse(source)
    separate_locals(tree, keep=_RECOGNISED)
    paths = imported_paths(tree)
    program = _Program(
        paths=paths,
        imported={*paths, *other_names(tree, paths)},
        kernels={node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.decorator_list},
        matchable=_matchable(tree, paths),
        allowed=MODULES | set(allowed),
        modules={*MODULES, *allowed, *USABLE_PARTS, *OPEN_MODULES},
        changes_fields=any(dotted(node, paths) & _FIELDS for node in ast.walk(tree)),
    )
    found = [broken for node in ast.walk(tree) for broken in _judged(node, program)]
    found += [*_modules_as_values(tree, program), *_used_otherwise(tree)]
    if not inline_assembly:
        found += [
            (node.lineno, "has inline assembly", "kernels must be written in Triton")
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == "inline_asm_elementwise"
        ]
    return _with_modules(sorted(set(found)), program.allowed)


def _with_modules(found: Sequence[Broken], allowed: Collection[str]) -> list[Broken]:
    """`found`, with a list of the allowed modules at the first forbidden import."""
    names = sorted({name.partition(".")[0] for name in allowed} - {"__future__"})
    first = next((broken for broken in found if broken[2] == _NOT_LISTED), None)
    listed = f"only these modules may be imported: {', '.join(names)}"
    return [(*broken[:2], listed) if broken is first else broken for broken in found]


def _matchable(tree: ast.Module, paths: Mapping[str, Collection[str]]) -> set[str]:
    """Built-in classes, and dataclasses without bases: only the program's own objects are of such a class."""
    bound = Counter(bindings(tree))
    found = {name for name in _BUILT_IN_CLASSES if not bound[name]}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and bound[node.name] == 1 and not node.bases + node.keywords:
            makers = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
            if makers and all(dotted(each, paths) == _DATACLASS and bound[root(each)] == 1 for each in makers):
                found.add(node.name)
    return found


def _modules_as_values(tree: ast.AST, program: _Program) -> Iterator[Broken]:
    """The lines that use a module as a value, because other code could look into it under another name."""
    bases = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute) and id(node) not in bases)
    for node in nodes:
        if isinstance(node.ctx, ast.Load) and dotted(node, program.paths) & program.modules:
            why = "a module may be used only as in module.name"
            yield node.lineno, f"uses the module {text(node)} as a value", why


def _used_otherwise(tree: ast.AST) -> Iterator[Broken]:
    """The lines that do more than call a function that must get one argument, or use what `add_argument` returns."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    simple = {id(call.func) for call in calls if len(call.args) + len(call.keywords) < 2 and not _unpacks(call)}
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    alone = {id(call.func) for call in calls if id(call) in statements}
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)):
        name = node.attr if isinstance(node, ast.Attribute) else node.id
        if name in WITH_ONE_ARGUMENT and id(node) not in simple:
            yield node.lineno, f"uses {name}", "it may only be called, with one argument"
        if name == "add_argument" and id(node) not in alone:
            yield node.lineno, "uses what add_argument returns", f"it {FORBIDDEN_ATTRIBUTES['attrgetter']}"


def _unpacks(call: ast.Call) -> bool:
    """Whether a call has arguments like *rest or **options."""
    return any(isinstance(value, ast.Starred) for value in call.args) or any(each.arg is None for each in call.keywords)


def _judged(node: ast.AST, program: _Program) -> Iterator[Broken]:
    imported, kernels = program.imported, program.kernels
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield from _import(node.lineno, alias.name, program)
                yield from _renamed(node.lineno, alias.name, alias)
        case ast.ImportFrom(module=module, names=names, level=level):
            name = "." * level + (module or "")
            for alias in names:
                path = f"{name}.{alias.name}"
                yield from _renamed(node.lineno, path, alias)
                if alias.name == "*":
                    yield node.lineno, f"imports everything from {name}", "names must be imported one by one"
                if (alias.name in HIDDEN_MODULES and name != "sys") or _is_elsewhere(name, alias.name):
                    yield from _import(node.lineno, path, program)
                if path not in program.allowed:
                    yield from _import(node.lineno, name, program)
                    parts = [*_part(node.lineno, name, alias.name)]
                    yield from parts or _attribute(node.lineno, name, alias.name, of_module=True)
                    if name == "numpy" and alias.name in FORBIDDEN_OF_NUMPY:
                        yield node.lineno, f"uses numpy.{alias.name}", _BEYOND_ARRAYS
                    if _PRIVATE.fullmatch(alias.name):
                        yield node.lineno, f"imports {path}", _INTERNAL
        case ast.ClassDef(body=body):
            for part in within_scope(body):
                if isinstance(part, ast.Import | ast.ImportFrom):
                    yield part.lineno, "imports in a class", "import at the beginning of the file"
        case ast.Name(id=name) if name in _BUILT_INS:
            yield node.lineno, f"uses {name}", _BUILT_INS[name]
        case ast.Name(id=name) if _is_dunder(name):
            yield node.lineno, f"uses {name}", _INTERNALS
        case ast.Name(id=name) if _MANGLED.match(name):
            yield node.lineno, f"uses {text(node)}", "classes change such names; use one without the underscores"
        case ast.FunctionDef(name=name) if _is_dunder(name) and name not in _OPERATORS:
            yield node.lineno, f"defines {name}", _INTERNALS
        case ast.FunctionDef(name="fileno") | ast.Name(id="fileno", ctx=ast.Store()) | ast.keyword(arg="fileno"):
            yield node.lineno, "defines fileno", _DESCRIPTORS
        case ast.Attribute(attr="fileno", ctx=ast.Store()) | ast.Constant(value="fileno"):
            yield node.lineno, "defines fileno", _DESCRIPTORS
        case ast.Constant(value=str(words)) if _is_dunder(words) and words != "__main__":
            yield node.lineno, f"has the text {words}", "it is a name of Python's internals"
        case ast.Constant(value=str(words)) if _CLOCKS.search(words):
            yield node.lineno, "reads a clock in a kernel", "a kernel's work must not depend on time"
        case ast.Call(func=ast.Name(id="type")) if len(node.args) + len(node.keywords) != 1 or _unpacks(node):
            yield node.lineno, "makes a class by calling type", _OWN_CODE
        case ast.FunctionDef(name=name) if name in kernels and LIBRARY_KERNEL.match(name):
            yield node.lineno, f"defines {name}", "libraries' kernels have such names; give it another name"
        case ast.Attribute(value=value, attr=name):
            module, first = (value.id if isinstance(value, ast.Name) else ""), root(value)
            parts = [broken for path in dotted(value, program.paths) for broken in _part(node.lineno, path, name)]
            yield from parts or _attribute(node.lineno, module, name, of_module=first in imported)
            changes = isinstance(node.ctx, ast.Store | ast.Del)
            if changes and (first in {*imported, *kernels} or (name in ATTRIBUTES_OF_KERNELS and first != "self")):
                yield node.lineno, f"changes {text(node)}", _AS_THEY_ARE
            if changes and name == "name" and program.changes_fields:
                yield node.lineno, f"changes {text(node)}", _FIELDS_ARE_CODE
            if module != "sys" and name in HIDDEN_MODULES and first in imported:
                yield node.lineno, f"uses {text(node)}", "it is a module that may not be imported"
            if name in FORBIDDEN_OF_NUMPY and module in ("np", "numpy"):
                yield node.lineno, f"uses {text(node)}", _BEYOND_ARRAYS
            if _PRIVATE.fullmatch(name) and first in imported:
                yield node.lineno, f"uses {name}", _INTERNAL
            if any(_is_elsewhere(path, name) for path in dotted(value, program.paths)):
                yield node.lineno, f"uses {text(node)}", f"import {name} instead"
        case ast.MatchClass(patterns=patterns) if patterns and ast.unparse(node.cls) not in program.matchable:
            yield node.cls.lineno, "matches parts of objects by their places", "name them, as in Point(x=x)"
        case ast.MatchClass(kwd_attrs=names):
            for name in names:
                yield from _attribute(node.cls.lineno, "", name)
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if root(value) in imported:
            yield node.lineno, f"changes {text(node)}", _AS_THEY_ARE
        case ast.Call(func=ast.Name(id="jit") | ast.Attribute(attr="jit")) if "repr" in {k.arg for k in node.keywords}:
            yield node.lineno, "gives a kernel another name", "a kernel must have the name of its function"
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if name in _OPEN:
            if len(args) > _OPEN_ARGUMENTS or _unpacks(node):
                yield node.lineno, "opens a file with many arguments", "name them, as in open(path, newline='')"
        case ast.keyword(arg="opener"):
            yield node.value.lineno, "opens a file with an opener", _DESCRIPTORS
        case ast.keyword(arg="namespace"):
            yield node.value.lineno, "gives a namespace", f"argparse {FORBIDDEN_ATTRIBUTES['attrgetter']} in it"
        case ast.keyword(arg="allow_pickle"):
            yield node.value.lineno, "reads pickles", "they run code from data"
        case ast.Global(names=names) | ast.Nonlocal(names=names) if set(names) & {*_BUILT_INS}:
            yield node.lineno, f"uses {names[0]}", _OWN_CODE
        case ast.Try() | ast.TryStar():
            if any(_runs_kernels(part, program) for part in node.body) and node.handlers:
                why = "a kernel that fails must fail the test, not be replaced"
                yield node.lineno, "launches a kernel in a try block with a handler", why


def _import(line: int, module: str, program: _Program) -> Iterator[Broken]:
    if module not in program.allowed:
        yield line, f"imports {module}", _NOT_LISTED


def _renamed(line: int, path: str, alias: ast.alias) -> Iterator[Broken]:
    name = alias.asname or alias.name
    taken = any(name in names and path != module for module, names in _NAMES.items())
    if taken or name not in _NAMES.get(path, (name,)) or (alias.asname and alias.name in WITH_ONE_ARGUMENT | _OPEN):
        yield line, f"imports {path} as {name}", "the rules recognise modules and functions by their usual names"


def _part(line: int, module: str, name: str) -> Iterator[Broken]:
    """Of some modules, only the listed parts may be used."""
    if name not in USABLE_PARTS.get(module, (name,)):
        only = ", ".join(sorted(USABLE_PARTS[module]))
        yield line, f"uses {module}.{name}", f"of {module}, only this may be used: {only}"
    if module in OPEN_MODULES and name in CLOSED_PARTS:
        yield line, f"uses {module}.{name}", _INTERNAL


def _is_elsewhere(module: str, name: str) -> bool:
    """Whether `module.name` is another module of the standard library, as in `dataclasses.copy`."""
    return module in _LIBRARY and name in _LIBRARY - {module}


def _attribute(line: int, module: str, name: str, *, of_module: bool = False) -> Iterator[Broken]:
    if module == "sys" and name not in USABLE_OF_SYS:
        yield line, f"uses sys.{name}", "of sys, only arguments, streams, exit and constants may be used"
    elif _is_dunder(name):
        yield line, f"uses {name}", _INTERNALS
    elif name in FORBIDDEN_ATTRIBUTES and not (name in LOADERS_OF_NUMPY and module not in ("np", "numpy")):
        does = FORBIDDEN_ATTRIBUTES[name]
        why = f"it {does}" if of_module else f"a library's {name} {does}; give yours another name"
        yield line, f"uses {name}", why


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _ALLOWED_DUNDERS


def _runs_kernels(tree: ast.AST, program: _Program) -> bool:
    """Whether there is a call of the form kernel[grid](argument, ...)."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str()))):
                if name in {*program.kernels, *program.imported}:
                    return True
            case ast.Call(func=ast.Subscript()) if node.args + node.keywords:
                return True
    return False
