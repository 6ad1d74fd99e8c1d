"""Modules that are imported when they are first used, so that `grader --help` waits for none of what grading takes."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any


def on_demand(name: str) -> Any:
    """The module `name`, which is executed when an attribute of it is first asked for.

    Raises ModuleNotFoundError at once when there is no such module. Type checkers are told with an ordinary import
    under TYPE_CHECKING.
    """
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
