"""Finds what kernels compute: operators, each found by its name.

The operator NAME is `OPERATOR` in the course's `assignment/NAME/operator.py` or, for those that come with the grader,
in the module `grader/operators/NAME.py`; to add one, no other file has to be edited. `grader.operators.base.Operator`
says what it must supply. A package in this folder is not an operator: it holds code that is too long for one module or
serves several. May import `base`.
"""

from __future__ import annotations

import copyreg
import importlib
import pkgutil
import re
import sys
import traceback
from pathlib import Path
from types import ModuleType

from grader.base.errors import UsageError
from grader.base.names import did_you_mean
from grader.base.paths import course_root
from grader.operators.base import Alternate, Dimension, GpuOracle, Location, Operator, Shape, Tensor, shape_words

_FOUNDATION = frozenset({"base", "layout", "number_types", "probes", "returned", "steps", "tolerance"})
"""Modules in this folder that are not operators."""


def known_operators() -> tuple[str, ...]:
    """The names of all operators, sorted."""
    ours = {m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and m.name not in _FOUNDATION}
    return tuple(sorted({*ours, *_of_the_course()}))


def _of_the_course() -> dict[str, Path]:
    """The files of operators that lie with the course's assignments, by name."""
    try:
        return {path.parent.name: path for path in (course_root() / "assignment").glob("*/operator.py")}
    except UsageError:  # no course here, as in a job that has only files
        return {}


def course_operator(name: str) -> Path | None:
    """The file of an operator that lies with the course's assignments; None if the grader brings it."""
    return _of_the_course().get(name)


def line_at_fault(error: Exception) -> str:
    """`file:line` in an operator's code that raised `error`; '' if it was raised elsewhere."""
    places = re.findall(r'File "(.+)", line (\d+)', "".join(traceback.format_exception(error)))
    modules = {f"{folder}/{name}.py" for folder in __path__ for name in known_operators()}
    modules |= {str(path) for path in (*Path(__file__).parent.glob("*/*.py"), *_of_the_course().values())}
    return next((f"{file}:{line}" for file, line in reversed(places) if file in modules), "")


def load_operator(name: str) -> Operator:
    """Load the operator `name`. Raises UsageError if there is none, or if its module defines one of another name."""
    if (path := course_operator(name)) is not None:
        return operator_in(path.read_text(encoding="utf-8"), str(path), name)
    known = known_operators()
    if name not in known:
        raise UsageError(
            f"There is no operator {name!r}; known operators: {', '.join(known)}.{did_you_mean(name, known)}"
        )
    return _defined_in(importlib.import_module(f"{__name__}.{name}"), name)


def source_of(operator: Operator) -> tuple[str, str, str]:
    """(text, file, name) of an operator, for `operator_in`."""
    path = course_operator(operator.name) or Path(sys.modules[f"{__name__}.{operator.name}"].__file__ or "")
    return path.read_text(encoding="utf-8"), str(path), operator.name


_loaded: dict[tuple[str, str], Operator] = {}


def operator_in(text: str, file: str, name: str) -> Operator:
    """The operator that the source `text` of a course's `file` defines. A confined process, which can open no file of
    the course, gets the text."""
    if (file, text) not in _loaded:
        module = ModuleType(f"operator_of_{name}")
        module.__file__ = file
        sys.modules[module.__name__] = module  # dataclasses look there for the names in annotations
        exec(compile(text, file, "exec"), module.__dict__)
        operator = _defined_in(module, name)
        if type(operator).__module__ == module.__name__:  # another process has no such module
            copyreg.pickle(type(operator), lambda _: (operator_in, (text, file, name)))
        _loaded[file, text] = operator
    return _loaded[file, text]


def _defined_in(module: ModuleType, name: str) -> Operator:
    operator = getattr(module, "OPERATOR", None)
    if not isinstance(operator, Operator) or operator.name != name:
        raise UsageError(
            f"{module.__file__} must define OPERATOR, an instance of Operator whose name is {name!r}; "
            f"found {f'one called {operator.name!r}' if isinstance(operator, Operator) else repr(operator)}."
        )
    return operator
