"""The replayer's language: one line for each command, with bytes behind it where the line names their number.

`replayer/replay.cc` explains it. A package holds a script for each shape. `grader run` and autotune send single
commands.
"""

from __future__ import annotations

from grader.plans.plan import Argument, Constant, Copy, Fill, Launch, Step


def place_line(file: str, line: int) -> str:
    """The submission's line that the following commands belong to."""
    return f"at {line} {file or '-'}\n"


def step_line(step: Step, constant: str) -> str:
    """The command for a step. `constant` is where a constant's bytes are: OFFSET LENGTH in a package's blobs, or
    - LENGTH if they follow."""
    match step:
        case Constant():
            return f"constant {step.to[0]} {step.to[1]} {constant}\n"
        case Fill():
            return f"fill {step.to[0]} {step.to[1]} {len(step.pattern) // 2} {step.pattern} {step.count}\n"
        case Copy():
            return f"copy {step.to[0]} {step.to[1]} {step.source[0]} {step.source[1]} {step.bytes}\n"
        case Launch():
            numbers = (step.kernel, *step.grid, step.block[0], step.shared_bytes, step.cluster, int(step.cooperative))
            arguments = " ".join(map(_argument, step.arguments))
            return f"launch {' '.join(map(str, numbers))} {len(step.arguments)} {arguments}\n"


def kernel_line(name: str, shared_bytes: int, binary: str) -> str:
    return f"kernel {name} {shared_bytes} {binary}\n"


def _argument(argument: Argument) -> str:
    return f"v {len(argument) // 2} {argument}" if isinstance(argument, str) else f"p {argument[0]} {argument[1]}"
