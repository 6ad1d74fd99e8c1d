"""Finds forbidden code in the syntax tree of a Python submission.

A CUDA program is compiled before it runs, and can reach only what it was linked with. A Python program reaches
everything in its process: Triton's driver and caches, the frames above it, every clock. So only listed modules may be
imported, all code must be in the file, and modules may be used but not changed. These rules judge a program's text; the
sandbox and the tracer watch what the program does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

MODULES = frozenset(
    {"__future__", "abc", "argparse", "array", "bisect", "collections", "collections.abc", "contextlib", "copy",
     "dataclasses", "device_arrays", "enum", "fractions", "functools", "heapq", "io", "itertools", "math", "numbers",
     "numpy", "operator", "pathlib", "random", "statistics", "string", "struct", "sys", "textwrap", "time", "triton",
     "triton.language", "triton.language.extra", "triton.language.extra.cuda", "triton.language.extra.libdevice",
     "triton.testing", "typing", "warnings"}
)  # fmt: skip
"""Modules that a submission may import, in addition to those that the assignment allows."""
_SYS = frozenset({"argv", "byteorder", "exit", "float_info", "maxsize", "stderr", "stdin", "stdout", "version_info"})
_BUILT_INS = frozenset(
    {"__import__", "breakpoint", "compile", "delattr", "eval", "exec", "getattr", "globals", "locals", "setattr",
     "vars"}
)  # fmt: skip
_OTHER_MODULES = frozenset(
    {"bltns", "builtins", "gc", "importlib", "inspect", "marshal", "multiprocessing", "os", "pickle", "posix", "runpy",
     "shutil", "socket", "subprocess", "sys", "tempfile", "threading"}
)  # fmt: skip
"""Forbidden modules that can be reached through an allowed module that imports them, as in `pathlib.os`."""
_PARTS_OF_MODULES = frozenset(
    {"ast", "atexit", "codecs", "json", "linecache", "logging", "np", "pkgutil", "platform", "re", "signal",
     "sysconfig", "traceback", "types", "uuid", "weakref", "zipimport"}
)  # fmt: skip
"""More modules that can be reached through allowed modules. A program's own objects may have these names too, so the
names are refused only as attributes of a module."""
_LEAVES_TRITON = frozenset(
    {"knobs", "launcher_cls", "load_binary", "nvsmi", "set_active", "reset_active", "compile", "cublas", "extern",
     "extern_elementwise", "_unsafe_update_src"}
)  # fmt: skip
_BY_TEXT = frozenset(
    {"attrgetter", "methodcaller", "Formatter", "vformat", "get_field", "get_type_hints", "ForwardRef",
     "singledispatch", "singledispatchmethod", "update_wrapper", "redirect_stdout", "redirect_stderr"}
)  # fmt: skip
_ATTRIBUTES = {
    **dict.fromkeys(("ctypes", "ctypeslib", "f2py", "distutils"), "reaches beyond numpy's arrays"),
    **dict.fromkeys(_OTHER_MODULES, "is a module that may not be imported"),
    **dict.fromkeys(_BY_TEXT, "looks up attributes by text"),
    **dict.fromkeys(("system", "popen", "Popen", "fork", "posix_spawn"), "starts other programs"),
    **dict.fromkeys(_LEAVES_TRITON, "changes or bypasses Triton"),
    **dict.fromkeys(("clock", "globaltimer"), "reads a clock in a kernel"),
    **dict.fromkeys(("allow_pickle", "load", "fromfunction"), "runs code from data"),
    **dict.fromkeys(
        ("f_back", "f_globals", "f_locals", "f_builtins", "gi_frame", "cr_frame", "ag_frame", "tb_frame", "tb_next"),
        "reads stack frames",
    ),
}
_RENAMED: dict[str, tuple[str, ...]] = {"sys": (), "numpy": ("np",)}
"""The other names under which these modules may be imported. Any further name is refused, because some rules recognise
these modules by name."""
_MOST_STEPS = 8
"""The longest chain of assignments, as in `a = triton.runtime; b = a`, that is followed."""
_ALLOWED_DUNDERS = frozenset(
    {"__name__", "__file__", "__doc__", "__init__", "__call__", "__enter__", "__exit__", "__post_init__", "__len__",
     "__getitem__", "__iter__", "__next__", "__repr__", "__str__", "__eq__", "__hash__"}
)  # fmt: skip
_OPERATORS = frozenset(
    {"__abs__", "__add__", "__bool__", "__contains__", "__delitem__", "__float__", "__floordiv__", "__ge__", "__gt__",
     "__iadd__", "__imul__", "__index__", "__int__", "__isub__", "__le__", "__lt__", "__matmul__", "__mod__", "__mul__",
     "__ne__", "__neg__", "__pow__", "__radd__", "__reversed__", "__rmul__", "__rsub__", "__rtruediv__",
     "__setitem__", "__sub__", "__truediv__"}
)  # fmt: skip
"""Operators that a program's classes may define."""
_OF_TRITON = frozenset({"JITFunction", "cache_hook", "fn", "pre_run_hooks", "run"})
"""Attributes of Triton's objects; changing one changes how kernels run."""
_WHOLE_MODULES = frozenset(
    {"compiler", "driver", "jit", "language", "libdevice", "math", "random", "runtime", "testing"}
)
"""Names of modules within Triton and numpy, and of Triton's driver."""
_NUMPY_PARTS = frozenset({"core", "lib", "ma", "testing"})
"""Parts of numpy that run code from text, read pickles, or reach memory outside arrays."""
_LIBRARY_KERNEL = re.compile(
    r"(?:cub|cublas|cudnn|cutlass|nvjet|sm\d\d|xmma)_|(?:ampere|maxwell|turing|volta)_\w*gemm|gemm(?:k1|SN)|gemv2|splitK"
)
"""Names of libraries' kernels. If a submission defined a function with such a name, the library's kernel would pass for
the submission's own."""
_NUMPY_LOADERS = frozenset({"allow_pickle", "load", "fromfunction"})
_CLOCKS = re.compile(r"globaltimer|%clock")
_PRIVATE = re.compile(r"(?!_experimental|__.*__$)_.*")
"""Names that are internal to a module. `_is_dunder` finds those like `__dict__`."""

Broken = tuple[int, str, str]
"""A line number, what the line does, and why that is forbidden."""
_OWN_CODE = "all code must be in the file that is handed in"
_BEYOND_ARRAYS = f"it {_ATTRIBUTES['ctypes']}"
_AS_THEY_ARE = "a program must not change modules or kernels"


def broken_rules(source: bytes, allowed: Collection[str], *, inline_assembly: bool = True) -> list[Broken]:
    """The lines that break a rule, in order. `allowed` names the modules that may be imported in addition to MODULES;
    `inline_assembly` says whether kernels may contain PTX. Raises SyntaxError."""
    tree = ast.parse(source)
    modules = {alias.asname or alias.name.partition(".")[0] for node in _imports(tree) for alias in node.names}
    imported = modules | _other_names(tree, modules)
    kernels = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.decorator_list}
    found = [broken for node in ast.walk(tree) for broken in _judged(node, imported, kernels, MODULES | set(allowed))]
    found += _modules_as_values(tree, _module_names(tree, MODULES | set(allowed)))
    if not inline_assembly:
        found += [
            (node.lineno, "has inline assembly", "kernels must be written in Triton")
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr == "inline_asm_elementwise"
        ]
    return sorted(set(found))


def _imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))


def _other_names(tree: ast.AST, imported: Collection[str]) -> set[str]:
    """The names that stand for parts of modules, as in `runtime = triton.runtime`."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
    found: set[str] = set()
    for _ in range(_MOST_STEPS):
        known = {*imported, *found}
        parts = [
            node for node in assigned if isinstance(node.value, ast.Attribute | ast.Name) and _root(node.value) in known
        ]
        found |= {target.id for node in parts for target in node.targets if isinstance(target, ast.Name)}
    return found


def _module_names(tree: ast.AST, allowed: Collection[str]) -> set[str]:
    """The names that stand for whole modules."""
    names: set[str] = set()
    for node in _imports(tree):
        for alias in node.names:
            if isinstance(node, ast.Import) or f"{node.module}.{alias.name}" in allowed:
                names.add(alias.asname or alias.name.partition(".")[0])
    return names


def _modules_as_values(tree: ast.AST, modules: Collection[str]) -> list[Broken]:
    """The lines that use a module as a value, because other code could look into it under another name."""
    bases = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    given = {id(value) for node in ast.walk(tree) if isinstance(node, ast.Call) for value in _arguments(node)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load))
    values = (node for node in names if node.id in modules and id(node) not in bases)
    why = "a module may be used only as in module.name"
    found = [(node.lineno, f"uses the module {node.id} as a value", why) for node in values]
    parts = (node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and id(node) in given)
    parts = (node for node in parts if node.attr in _WHOLE_MODULES and _root(node) in modules)
    return found + [(node.lineno, f"uses the module {ast.unparse(node)} as a value", why) for node in parts]


def _arguments(call: ast.Call) -> Iterator[ast.expr]:
    yield from call.args
    yield from (keyword.value for keyword in call.keywords)


def _judged(
    node: ast.AST, imported: Collection[str], kernels: Collection[str], allowed: Collection[str]
) -> Iterator[Broken]:
    match node:
        case ast.Import(names=names):
            for alias in names:
                yield from _import(node.lineno, alias.name, allowed)
                if alias.asname and alias.asname not in _RENAMED.get(alias.name, (alias.asname,)):
                    yield node.lineno, f"imports {alias.name} as {alias.asname}", "this module must keep its name"
        case ast.ImportFrom(module=module, names=names, level=level):
            name = "." * level + (module or "")
            for alias in names:
                if alias.name == "*":
                    yield node.lineno, f"imports everything from {name}", "names must be imported one by one"
                if alias.name in _PARTS_OF_MODULES:
                    yield from _import(node.lineno, f"{name}.{alias.name}", allowed)
                if f"{name}.{alias.name}" not in allowed:
                    yield from _import(node.lineno, name, allowed)
                    yield from _attribute(node.lineno, name, alias.name)
                    if name == "numpy" and alias.name in _NUMPY_PARTS:
                        yield node.lineno, f"uses numpy.{alias.name}", _BEYOND_ARRAYS
        case ast.Name(id=name) if name in _BUILT_INS or _is_dunder(name):
            yield node.lineno, f"uses {name}", _OWN_CODE
        case ast.FunctionDef(name=name) if _is_dunder(name) and name not in _OPERATORS:
            yield node.lineno, f"defines {name}", "it gives access to Python's internals"
        case ast.Constant(value=str(text)) if _is_dunder(text) and text != "__main__":
            yield node.lineno, f"has the text {text}", "it is a name of Python's internals"
        case ast.Constant(value=str(text)) if _CLOCKS.search(text):
            yield node.lineno, "reads a clock in a kernel", "a kernel's work must not depend on time"
        case ast.Call(func=ast.Name(id="type")) if len(node.args) + len(node.keywords) != 1:
            yield node.lineno, "makes a class by calling type", _OWN_CODE
        case ast.FunctionDef(name=name) if name in kernels and _LIBRARY_KERNEL.match(name):
            yield node.lineno, f"defines {name}", "libraries' kernels have such names; give it another name"
        case ast.Attribute(value=value, attr=name):
            yield from _attribute(node.lineno, _root(value) if isinstance(value, ast.Name) else "", name)
            changes = isinstance(node.ctx, ast.Store | ast.Del)
            if changes and (_root(value) in {*imported, *kernels} or (name in _OF_TRITON and _root(value) != "self")):
                yield node.lineno, f"changes {ast.unparse(node)}", _AS_THEY_ARE
            if name in _PARTS_OF_MODULES and _root(value) in imported:
                yield node.lineno, f"uses {ast.unparse(node)}", "it is a module that may not be imported"
            if name in _NUMPY_PARTS and isinstance(value, ast.Name) and value.id in ("np", "numpy"):
                yield node.lineno, f"uses {ast.unparse(node)}", _BEYOND_ARRAYS
            if _PRIVATE.fullmatch(name) and _root(value) in imported:
                yield node.lineno, f"uses {name}", "it is internal to a module"
        case ast.MatchClass(patterns=patterns) if patterns and not _is_built_in(node.cls):
            yield node.cls.lineno, "matches parts of objects by their places", "name them, as in Point(x=x)"
        case ast.MatchClass(kwd_attrs=names):
            for name in names:
                yield from _attribute(node.cls.lineno, "", name)
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()) if _root(value) in imported:
            yield node.lineno, f"changes {ast.unparse(node)}", _AS_THEY_ARE
        case ast.Call(func=ast.Name(id="jit") | ast.Attribute(attr="jit")) if "repr" in {k.arg for k in node.keywords}:
            yield node.lineno, "gives a kernel another name", "a kernel must have the name of its function"
        case ast.Call(func=ast.Name(id="wraps") | ast.Attribute(attr="wraps")) if len(node.args + node.keywords) > 1:
            yield node.lineno, "lists attributes for wraps", "it looks up attributes by text"
        case ast.keyword(arg="allow_pickle"):
            yield node.value.lineno, "reads pickles", "they run code from data"
        case ast.Global(names=names) | ast.Nonlocal(names=names) if set(names) & _BUILT_INS:
            yield node.lineno, f"uses {names[0]}", _OWN_CODE
        case ast.Try():
            if any(_runs_kernels(part) for part in node.body) and node.handlers:
                why = "a kernel that fails must fail the test, not be replaced"
                yield node.lineno, "launches a kernel in a try block with a handler", why


def _import(line: int, module: str, allowed: Collection[str]) -> Iterator[Broken]:
    if module not in allowed:
        yield line, f"imports {module}", "only the modules that the handout lists may be imported"


def _attribute(line: int, module: str, name: str) -> Iterator[Broken]:
    if module == "sys" and name not in _SYS:
        yield line, f"uses sys.{name}", "of sys, only arguments, streams, exit and constants may be used"
    elif _is_dunder(name):
        yield line, f"uses {name}", "it gives access to Python's internals"
    elif name in _ATTRIBUTES and not (name in _NUMPY_LOADERS and module not in ("np", "numpy")):
        yield line, f"uses {name}", f"it {_ATTRIBUTES[name]}"


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__") and name not in _ALLOWED_DUNDERS


def _is_built_in(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("bool", "bytes", "dict", "float", "int", "list", "str", "tuple")


def _runs_kernels(tree: ast.AST) -> bool:
    """Whether there is a call of the form kernel[grid](argument, ...)."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args + node.keywords)
    return any(isinstance(call.func, ast.Subscript) for call in calls)


def _root(node: ast.expr) -> str:
    """The name at the beginning of `name.attribute[index]...`; '' if there is none."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
