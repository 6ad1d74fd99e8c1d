"""Finds where kernels read or write a certain parameter of `solve`, and a launch that is for another shape."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from grader.cpp.reading import Files, read_source
from grader.cpp.source import Assigned, Function, Item, Launch, Source, Variable
from grader.sandbox.room import confined

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_ONLY_A_NAME = re.compile(r"\(*(?:\w+\()?(\w+)\)*(?:\s*(?:>>|/)\s*\w+)?")
_COMPUTES = re.compile(r"[-+*/%&|^?]|\w\(")
Way = Literal["reads", "writes", "astray"]
"""How a line has to do with an array: it reads an element, sets one, or sets an address for reading."""


@confined(memory_bytes=2 << 30)
def main_line(files: Files, parameter: int, way: Way) -> Item | None:
    """The line where kernels compute, or only read, most elements of the array that is parameter number `parameter` of
    `solve`; where it goes through a pointer or a function, the line that names it most often. In the room."""
    source = read_source(files)
    solve = next((f for f in source.functions if f.name == "solve" and len(f.parameters) > parameter), None)
    if solve is None:
        return None
    found, others = list[Item](), list[Item]()
    for _, kernel, name in _kernels(source, solve.parameters[parameter][1]):
        pointers = {v.name for v in source.variables if v.pointers and name in _WORD.findall(v.value)}
        sets = [a for a in source.assignments if a.name == name and kernel.holds(a.file, a.line)]
        written = [_computed(source, a) for a in sets if a.target.startswith("*") or "[" in a.target]
        through = {name} if way == "astray" else {name, *pointers}
        used = [u for u in source.uses if u.name in through and kernel.holds(u.file, u.line)]
        named = [
            item
            for items, text in (
                (source.variables, lambda item: item.value),
                (source.calls, lambda item: " ".join(item.arguments)),
            )
            for item in items
            if kernel.holds(item.file, item.line) and name in _WORD.findall(text(item))
        ]
        found += written if way == "writes" else used or named
        others += named or used
    found = found or others
    often = Counter((item.file, item.line) for item in found)
    return max(found, key=lambda item: often[item.file, item.line], default=None)


def _computed(source: Source, written: Assigned) -> Assigned | Variable:
    """Where the value is computed that an assignment only names, as `y[i] = sum` does."""
    at: Assigned | Variable = written
    sets: list[Assigned | Variable] = [*source.assignments, *source.variables]
    while _is_moved(at) and (name := _ONLY_A_NAME.fullmatch(at.value)) is not None:
        before = [each for each in sets if each.name == name[1] and each.file == at.file and each.line < at.line]
        before = [each for each in before if each.function == at.function and _is_computed(each)]
        if not before:
            break
        at = max(before, key=lambda each: each.line)
    return at if _COMPUTES.search(at.value) or not _is_moved(at) else written


def _is_moved(to: Assigned | Variable) -> bool:
    return isinstance(to, Variable) or to.operator == "="


def _is_computed(to: Assigned | Variable) -> bool:
    """Not a mere number, with which sums begin."""
    return bool(_WORD.search(to.value)) or not _is_moved(to)


@confined(memory_bytes=2 << 30)
def left_out(files: Files) -> Function | None:
    """The one kernel that is never launched, or None. In the room."""
    source = read_source(files)
    launched = {launch.name for launch in source.launches}
    found = [each for each in source.functions if each.space == "global" and each.name not in launched]
    return found[0] if len(found) == 1 and launched else None


@confined(memory_bytes=2 << 30)
def launch_for_another(files: Files, wanted: str, other: str) -> Launch | None:
    """The launch of a kernel<other> within a branch for `wanted`, as in `if (d == 64) kernel<32><<<…>>>(…);`. None if
    there is none, or if a kernel<wanted> is launched anywhere. In the room."""
    source = read_source(files)
    launches = [launch for launch in source.launches if launch.template]
    if any(launch.template[0] == wanted for launch in launches):
        return None
    branches = [branch for branch in source.branches if branch.condition.replace(" ", "").endswith(f"=={wanted}")]
    for launch in launches:
        if launch.template[0] == other and any(branch.holds(launch.file, launch.line) for branch in branches):
            return launch
    return None


def written_in(source: Source, array: str) -> tuple[Launch, int] | None:
    """The launch of the kernel that writes `array`, a variable of `solve`, and the line that does; None unless there is
    one such kernel."""
    found = {
        (kernel.file, kernel.line): (launch, line.line)
        for launch, kernel, name in _kernels(source, array)
        for line in source.assignments
        if line.name == name and kernel.holds(line.file, line.line)
    }
    return next(iter(found.values())) if len(found) == 1 else None


def _kernels(source: Source, array: str) -> Iterator[tuple[Launch, Function, str]]:
    """The launches that get the array, their kernels, and the kernels' names for it."""
    names = {array}
    pointers = [(v.name, v.value) for v in source.variables if v.function == "solve" and v.pointers]
    set_later = [(a.name, a.value) for a in source.assignments if a.function == "solve"]
    for name, value in (*pointers, *set_later):  # such as `float* to = last ? V : other`, and then `from = to`
        if names & set(_WORD.findall(value)) and name in dict(pointers):
            names.add(name)
    for call in source.calls:
        if call.name.startswith("cudaMemcpy") and len(call.arguments) > 1 and call.arguments[0] == array:
            names |= set(_WORD.findall(call.arguments[1]))
    for launch in source.launches:
        kernel = next((f for f in source.functions if f.name == launch.name and f.space == "global"), None)
        pairs = zip(launch.arguments, kernel.parameters, strict=False) if kernel is not None else ()
        for argument, (_, name) in pairs:
            if kernel is not None and names & set(_WORD.findall(argument)):
                yield launch, kernel, name
