"""Runs a submission's host code: its file once, and `solve` for each shape."""

from __future__ import annotations

import inspect
import os
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from grader.plans import lines
from grader.plans.contract import Arguments, def_lines
from grader.plans.dtypes import DTYPES
from grader.plans.handles import Memory, Tensor, strided
from grader.plans.plan import Plan
from grader.plans.recorder import Recorder, use

_MODULES = Path(__file__).parent / "modules"


class NoFunction(Exception):
    """The submission does not define what the assignment asks for."""


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
    values, pair = {**tensors, **arguments.numbers}, arguments.pair
    solve, forward, backward = (names.get(name) for name in ("solve", "forward", "backward"))
    if callable(solve):
        solve(**_chosen(solve, "solve", values, arguments.names, arguments))
    elif pair is not None and callable(forward) and callable(backward):
        saved = forward(**_chosen(forward, "forward", values, pair.forward, arguments))
        backward(saved, **_chosen(backward, "backward", values, pair.backward, arguments, skipped=1))
    else:
        wanted = def_lines(arguments)
        other = f", or the pair `{wanted[1]}` and `{wanted[2]}`" if len(wanted) > 1 else ""
        raise NoFunction(f"the file defines no function `solve`: write `{wanted[0]}`{other}")


def _chosen(
    function: Callable[..., Any], name: str, values: Mapping[str, Any], legal: Sequence[str], arguments: Arguments,
    skipped: int = 0,
) -> dict[str, Any]:  # fmt: skip
    """The arguments that the function takes, by name."""
    parameters = list(inspect.signature(function).parameters.values())[skipped:]
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return {each: values[each] for each in legal}
    taken = [each.name for each in parameters if each.kind is not each.VAR_POSITIONAL]
    wrong = [each.name for each in parameters if each.name not in legal and each.default is each.empty]
    if wrong or any(each.kind is each.POSITIONAL_ONLY for each in parameters):
        line = next(line for line in def_lines(arguments) if line.startswith(f"def {name}("))
        raise NoFunction(
            f"`{name}` takes {wrong[0] if wrong else 'arguments without names'}, which is no argument: write `{line}`"
        )
    return {each: values[each] for each in taken if each in legal}
