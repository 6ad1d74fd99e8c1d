"""Finds the lines of kernels that read or write the array which is a certain parameter of `solve`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.cpp.source import Function, Item, Source

_WORD = re.compile(r"[A-Za-z_]\w*")


def lines_of(source: Source, parameter: int, *, writes: bool) -> list[Item]:
    """The places where kernels write, or only read, an element of the array that is parameter number `parameter` of
    `solve`; where it goes through a pointer or a function, the lines that name it."""
    solve = next((f for f in source.functions if f.name == "solve" and len(f.parameters) > parameter), None)
    if solve is None:
        return []
    found: list[Item] = []
    for kernel, name in _kernels(source, solve.parameters[parameter][1]):
        written = [a for a in source.assignments if a.name == name and kernel.holds(a.file, a.line)]
        used = [u for u in source.uses if u.name == name and kernel.holds(u.file, u.line)]
        named = [
            item
            for items, text in (
                (source.variables, lambda item: item.value),
                (source.calls, lambda item: " ".join(item.arguments)),
            )
            for item in items
            if kernel.holds(item.file, item.line) and name in _WORD.findall(text(item))
        ]
        found += (written or named or used) if writes else (used or named)
    return sorted(found, key=lambda item: (item.file, item.line))


def _kernels(source: Source, array: str) -> Iterator[tuple[Function, str]]:
    """The kernels that get the array, and their names for it."""
    for launch in source.launches:
        kernel = next((f for f in source.functions if f.name == launch.name and f.space == "global"), None)
        pairs = zip(launch.arguments, kernel.parameters, strict=False) if kernel is not None else ()
        for argument, (_, name) in pairs:
            if kernel is not None and array in _WORD.findall(argument):
                yield kernel, name
