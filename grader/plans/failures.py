"""What a student reads when host code or a kernel's compilation fails: the line and the reason, then the calls."""

from __future__ import annotations

import tokenize
import traceback
from pathlib import Path

from triton.compiler.errors import CompilationError

from grader.plans.host import NoFunction
from grader.plans.lines import own_name
from grader.plans.refusals import Refused
from grader.plans.replayer import DeviceFailed

_ADVICE = (
    (
        "'function' object is not subscriptable",
        "a function that is launched as kernel[grid](...) needs @triton.jit above its def",
    ),
    ("ndarray", "kernels take tensors: make one of a numpy table with torch.from_numpy"),
    ("null byte", "Python's source cannot contain one: save the file as UTF-8"),
)
"""Parts of Python's and Triton's error messages that name no remedy, each with advice on the program."""
_TORCH = "submissions get a stand-in of torch with tensors and without operators, so compute in a kernel"
_MOST, _MOST_OF_A_LINE = 8000, 400
_MOST_CALLS, _MORE_LINES = 5, 20


def described(error: BaseException, file: Path) -> str:
    """The error, with only the submission's lines, and its files under their submitted names."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if own_name(frame.filename)]
    at = f"{own_name(own[-1].filename)}:{own[-1].lineno}" if own else f"{file.name}:1"
    if isinstance(error, NoFunction):
        return f"{file.name}:{error.args[1]}: error: {error.args[0]}\n"
    if isinstance(error, Refused) and str(error).startswith(f"{file.name}:"):
        return f"{error}\n"
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "torch":
        return f"{at}: error: {str(error).partition(' (')[0]}: {_TORCH}\n"
    said = str(error).strip()
    first = ""
    if isinstance(error, CompilationError):
        with tokenize.open(file) as source:  # in the encoding that the file names
            first = _place_in_kernel(error, source.read(), file.name)
    if isinstance(error, DeviceFailed):
        said = "a kernel or a call failed on the GPU while it was tried; see what it printed"
    if isinstance(error, SyntaxError) and error.filename == str(file):
        at, said = f"{file.name}:{error.lineno or 1}", f"{error.msg}\n{(error.text or '').strip()}"[:_MOST_OF_A_LINE]
    if isinstance(error, SystemExit):
        said = f"the host code ended the program ({said})"
    line, *more = said.splitlines() or [type(error).__name__]
    kind = "" if type(error).__module__.startswith("grader.") else f"{type(error).__name__}: "
    callers = own if first else own[:-1]
    first = first or "\n    ".join((f"{at}: error: {kind}{line}", *more[:_MORE_LINES])) + "\n"
    calls = [
        f"{own_name(frame.filename)}:{frame.lineno}: note: called from here: {frame.line}\n"
        for frame in reversed(callers[-_MOST_CALLS:])
    ]
    advice = "".join(f"note: {advice}\n" for part, advice in _ADVICE if part in said)
    return (first + advice + "".join(calls))[:_MOST]


def _place_in_kernel(error: CompilationError, text: str, name: str) -> str:
    """The innermost line of the program that Triton cannot compile. Triton counts lines from the kernel's `def`."""
    cause = error.__cause__
    inner = _place_in_kernel(cause, text, name) if isinstance(cause, CompilationError) else ""
    before, found, _ = text.partition(error.src or "\0")
    if inner or not found or error.node is None:
        return inner
    line = before.count("\n") + error.node.lineno
    reason = error.error_message or (str(cause) if cause else "Triton cannot compile it")
    return f"{name}:{line}: error: {reason}\n"
