"""The operations of operations.cuh: their names, argument types and result types, read from the file itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

HEADER = Path(__file__).parent / "operations.cuh"
INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f32", "f64")
TYPES = (*INTEGERS, *FLOATS)
ROUNDINGS = ("rn", "rz", "ru", "rd")
_OPERATION = re.compile(r"\bOP (?P<result>\w+) (?P<name>[\w#]+)\((?P<arguments>[^)]*)\)")


@dataclass(frozen=True)
class Operation:
    """A function of values: `arguments` are types of `TYPES`, as is `result`."""

    name: str
    result: str
    arguments: tuple[str, ...]


def read_operations() -> list[Operation]:
    """Everything declared by OP, with what the macros of operations.cuh make of it."""
    text = re.sub(r"\\\n", " ", HEADER.read_text())
    found: list[Operation] = []
    for line in text.splitlines():
        for match in _OPERATION.finditer(line):
            types = tuple(argument.split()[0] for argument in match["arguments"].split(","))
            found += _instances(Operation(match["name"], match["result"], types), text)
    return found


def _instances(operation: Operation, text: str) -> list[Operation]:
    """The operation itself, or, where it is part of a macro, one for each use of the macro."""
    name = operation.name
    if "##" not in name:
        return [operation]
    if "##suffix" in name:
        return [Operation(name.replace("##suffix", s), operation.result, operation.arguments) for s in ROUNDINGS]
    if "##to##" in name:
        narrow = ("s8", "u8", "s16", "u16")
        return [Operation(name.replace("##to##", f"_{t}_").replace("__", "_"), t, operation.arguments) for t in narrow]
    macro = "SIMD" if len(operation.arguments) == 2 else "SIMD1"
    names = re.findall(rf"^{macro}\((\w+),", text, re.M)
    return [Operation(name.replace("name##", n), operation.result, operation.arguments) for n in names]
