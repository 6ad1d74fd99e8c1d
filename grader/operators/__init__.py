"""Defines what kernels compute: one module per operator, found by its name.

A module `grader/operators/NAME.py` that defines `OPERATOR` is the operator NAME; to add one, no other file has to be
edited. `grader.operators.base.Operator` says what it must supply. A package in this folder is not an operator: it holds
code that is too long for one module or serves several. May import `base`.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
import traceback

from grader.base.errors import GraderFault, UsageError
from grader.operators.base import Alternate, Dimension, GpuOracle, Location, Operator, Shape, Tensor, shape_words

_FOUNDATION = frozenset({"base", "layout", "number_types", "tolerance"})
"""Modules of this folder that are no operators."""


def known_operators() -> tuple[str, ...]:
    """The names of all operators, sorted."""
    return tuple(sorted(m.name for m in pkgutil.iter_modules(__path__) if not m.ispkg and m.name not in _FOUNDATION))


def line_at_fault(error: Exception) -> str:
    """`file:line` in the operator's module that raised `error`; '' if it was raised elsewhere."""
    places = re.findall(r'File "(.+)", line (\d+)', "".join(traceback.format_exception(error)))
    modules = {f"{folder}/{name}.py" for folder in __path__ for name in known_operators()}
    return next((f"{file}:{line}" for file, line in reversed(places) if file in modules), "")


def load_operator(name: str) -> Operator:
    """The operator called `name`. Raises UsageError with a list of the known operators if there is none."""
    known = known_operators()
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise UsageError(f"There is no operator {name!r}; known operators: {', '.join(known)}.{hint}")
    module = importlib.import_module(f"{__name__}.{name}")
    operator = getattr(module, "OPERATOR", None)
    if not isinstance(operator, Operator) or operator.name != name:
        raise GraderFault(
            f"{module.__file__} must define OPERATOR, an instance of Operator whose name is {name!r}; "
            f"found {operator!r}."
        )
    return operator
