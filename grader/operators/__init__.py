"""Defines what kernels compute: one module per operator, found by its name.

A module `grader/operators/NAME.py` that defines `OPERATOR` is the operator NAME; to add one, no other file has to be
edited. `grader.operators.base.Operator` says what it must supply. A package in this folder is not an operator: it holds
code that is too long for one module or serves several. May import `base`.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import traceback

from grader.base.errors import UsageError
from grader.base.names import did_you_mean
from grader.operators.base import Alternate, Dimension, GpuOracle, Location, Operator, Shape, Tensor, shape_words

_FOUNDATION = frozenset({"base", "layout", "number_types", "returned", "tolerance"})
"""Modules in this folder that are not operators."""


def known_operators() -> tuple[str, ...]:
    """The names of all operators, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and m.name not in _FOUNDATION))


def line_at_fault(error: Exception) -> str:
    """`file:line` in the operator's module that raised `error`; '' if it was raised elsewhere."""
    places = re.findall(r'File "(.+)", line (\d+)', "".join(traceback.format_exception(error)))
    modules = {f"{folder}/{name}.py" for folder in __path__ for name in known_operators()}
    return next((f"{file}:{line}" for file, line in reversed(places) if file in modules), "")


def load_operator(name: str) -> Operator:
    """Load the operator `name`. Raises UsageError if there is none, or if its module defines one of another name."""
    known = known_operators()
    if name not in known:
        raise UsageError(
            f"There is no operator {name!r}; known operators: {', '.join(known)}.{did_you_mean(name, known)}"
        )
    module = importlib.import_module(f"{__name__}.{name}")
    operator = getattr(module, "OPERATOR", None)
    if not isinstance(operator, Operator) or operator.name != name:
        raise UsageError(
            f"{module.__file__} must define OPERATOR, an instance of Operator whose name is {name!r}; "
            f"found {f'one called {operator.name!r}' if isinstance(operator, Operator) else repr(operator)}."
        )
    return operator
