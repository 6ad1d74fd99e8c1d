"""Runs a submission's host code: its file once, and `solve` for each shape."""

from __future__ import annotations

import inspect
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.plans import lines
from grader.plans.contract import Arguments, def_line
from grader.plans.dtypes import DTYPES
from grader.plans.handles import Memory, Tensor, strided
from grader.plans.plan import Plan
from grader.plans.recorder import Recorder, use

_MODULES = Path(__file__).parent / "modules"


class NoFunction(Exception):
    """The submission does not define what the assignment asks for: (what to write, its line)."""


def open_file(file: Path, run_name: str = "submission", arguments: Sequence[str] = ()) -> dict[str, Any]:
    """Run a submission's file, and return what it defines."""
    lines.folder = str(file.parent)
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # Triton 3.9 warns without it
    sys.path[:0] = [str(file.parent), str(_MODULES)]
    sys.argv = [str(file), *arguments]
    return runpy.run_path(str(file), run_name=run_name)


def record_shape(names: Mapping[str, Any], arguments: Arguments, recorder: Recorder) -> Plan:
    """The plan for one shape, of a file that defined `names`."""
    use(recorder)
    call(names, arguments, tensors_of(arguments))
    return recorder.plan(len(arguments.buffers))


def tensors_of(arguments: Arguments) -> dict[str, Tensor]:
    """The tensor arguments, in new memory, by name."""
    memory = [Memory(part.size_bytes) for part in arguments.buffers]
    return {
        each.name: strided(memory[each.buffer], DTYPES[each.dtype], each.shape, each.strides, each.offset)
        for each in arguments.tensors
    }


def call(names: Mapping[str, Any], arguments: Arguments, tensors: Mapping[str, Tensor]) -> None:
    """Call `solve`, or `forward` and `backward`. Raises NoFunction if they are not there or take other arguments."""
    defined = [name for name in arguments.functions if callable(names.get(name))]

    def called(name: str, *first: Any) -> Any:
        """What the function returns, which gets the arguments that it takes, by name, behind the `first`."""
        values, legal = {**tensors, **arguments.numbers}, arguments.functions[name][len(first) :]
        taken = list(inspect.signature(names[name]).parameters.values())[len(first) :]
        wrong = [each.name for each in taken if each.name not in legal and each.default is each.empty]
        takes_any = any(each.kind is each.VAR_KEYWORD for each in taken)
        if not takes_any and (wrong or any(each.kind is each.POSITIONAL_ONLY for each in taken)):
            what = wrong[0] if wrong else "arguments without names"
            advice = f"`{name}` takes {what}, which is no argument: write `{def_line(arguments, name)}`"
            raise NoFunction(advice, getattr(getattr(names[name], "__code__", None), "co_firstlineno", 1))
        chosen = legal if takes_any else [each.name for each in taken if each.name in legal]
        return names[name](*first, **{each: values[each] for each in chosen})

    if "solve" in defined:
        called("solve")
    elif {"forward", "backward"} <= {*defined}:
        called("backward", called("forward"))
    else:
        solve, *pair = (f"`{def_line(arguments, name)}`" for name in arguments.functions)
        other = f", or the pair {' and '.join(pair)}" if pair else ""
        raise NoFunction(f"the file defines no function `solve`: write {solve}{other}", 1)
