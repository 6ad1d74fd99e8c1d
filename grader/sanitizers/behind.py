"""Lines behind a wrong value, which no recorded value has: the loop that loses terms of a sum, what sets the pointer
that was read through, what sets the grid. Each is a fact that the source states, added to the finding."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from grader.cpp.source import Branch, Loop, Source, Variable
from grader.findings import Finding, Place

_WORD = re.compile(r"[A-Za-z_]\w*")
_NARROW = {"short": 32767, "unsigned short": 65535, "char": 127, "unsigned char": 255}
_NARROW |= {"int16_t": 32767, "uint16_t": 65535, "int8_t": 127, "uint8_t": 255}


def _loop_of_sum(finding: Finding, source: Source) -> Finding:
    """The loop over the terms of a sum, in place of the sum: one whose variable does not choose the element that is
    summed. Terms at an end are lost by the outermost one, others by the innermost. Without any in the kernel that
    adds to its element, it is around the launch."""
    place = finding.place
    function = source.function_at(place.file, place.line) if place is not None else None
    if place is None or function is None:
        return finding
    stores = [a for a in source.assignments if a.holds(place.file, place.line) and a.target != a.name]
    kept = set(_WORD.findall(" ".join(a.target.partition("[")[2] for a in stores)))
    around = source.loops_around(place.file, place.line)
    loops = [loop for loop in around if function.line <= loop.line and _variable(loop) not in kept]
    if not loops and any(a.operator == "+=" or a.name in _WORD.findall(a.value) for a in stores):
        launches = (each for each in source.launches if each.name == function.name)
        loops = [loop for each in launches for loop in source.loops_around(each.file, each.line)[-1:]]
    if not loops:
        return finding
    loop = loops[0] if finding.words.get("lost") == "end" else loops[-1]
    return finding.model_copy(update={"file": loop.file, "line": loop.line}).with_facts(**_end_of(source, loop))


def _start_of_sum(finding: Finding, source: Source) -> Finding:
    """The declaration of the sum, and the outermost loop after it around the line that adds to it."""
    file, line = finding.file or "", finding.line or 0
    names = " ".join(each.name for each in source.assignments if each.holds(file, line))
    for made in declared(source, names, file, line):
        for loop in source.loops_around(file, line):
            if not loop.holds(file, made.line):
                return finding.with_facts(set_line=made.line, set_name=made.name, loop_line=loop.line)
    return finding


def _variable(loop: Loop) -> str:
    names = _WORD.findall(loop.steps[0].partition("=")[0]) if loop.steps else []
    return names[-1] if names else ""


def _end_of(source: Source, item: Loop | Branch) -> dict[str, object]:
    """The variable of its condition that its function sets by a quotient before."""
    for variable in declared(source, item.condition, item.file, item.line):
        if re.search(r"/|>>", variable.value):
            return {"end_line": variable.line, "end": variable.name}
    return {}


def declared(source: Source, text: str, file: str, line: int) -> Iterator[Variable]:
    """The variables of `text` that are declared before a line in its function, the last declaration of each."""
    function = source.function_at(file, line)
    for name in dict.fromkeys(_WORD.findall(text)):
        made = [v for v in source.variables if v.name == name and v.value and v.file == file and v.line <= line]
        if made and function is not None and function.holds(file, made[-1].line):
            yield made[-1]


def _pointers(finding: Finding, source: Source) -> Finding:
    """What sets the pointer of a load of a wrong element. If two elements are wrong, it is what both pointers come
    from."""
    place = finding.other if finding.kind == "other_input" and finding.other else finding.place
    if place is None:
        return finding
    used = dict.fromkeys(use.name for use in source.uses if use.holds(place.file, place.line))
    chains = [chain for chain in (_origins(source, name, place) for name in used) if chain]
    if finding.kind == "other_unit_read" and len(chains) > 1:
        chains = [[each for each in chains[0] if all(each in chain for chain in chains)]]
    if len(chains) != 1 or not chains[0]:
        return finding
    found = chains[0][-1 if finding.kind == "other_unit_read" else 0]
    return finding.with_facts(set_line=found.line, set_name=found.name)


def _origins(source: Source, name: str, place: Place) -> list[Variable]:
    """The pointers that `name` comes from, itself first."""
    found: list[Variable] = []
    text = name
    for _ in range(4):
        pointers = [v for v in declared(source, text, place.file, place.line) if v.pointers and v.value != "{}"]
        if not pointers or pointers[0] in found:
            break
        found.append(pointers[0])
        text = pointers[0].value
    return [each for each in found if not each.shared and _WORD.search(each.value) and "{" not in each.value]


def _grid(finding: Finding, source: Source) -> Finding:
    """What sets the grid, if all launches have the same, the condition of the line that writes the others, and its
    index of a narrow type."""
    line, file = finding.values.get("at"), finding.file or ""
    if isinstance(line, int):
        if guard := _guard(source, file, line):
            finding = finding.with_facts(guard_line=guard)
        finding = finding.with_facts(**_narrow_index(source, file, line))
    grids = {launch.configuration[0] for launch in source.launches if launch.configuration}
    if len(grids) != 1:
        return finding
    first = source.launches[0]
    at = next(declared(source, grids.pop(), first.file, first.line), first)
    return finding.with_facts(grid=f"{at.file}:{at.line}")


def _guard(source: Source, file: str, line: int) -> int:
    """The line of the last condition on which a line depends; 0 if it is its own."""
    function = source.function_at(file, line)
    within = [b for b in source.branches if function and function.holds(b.file, b.line) and b.line < line]
    return max((b.line for b in within if b.holds(file, line) or (b.leaves and b.end < line)), default=0)


def _narrow_index(source: Source, file: str, line: int) -> dict[str, object]:
    """The variable of a narrow type by which a line chooses an element."""
    for use in source.uses:
        for variable in declared(source, use.index, file, line) if use.holds(file, line) else ():
            if (most := _NARROW.get(variable.type)) is not None and not variable.pointers:
                return {"narrow_line": variable.line, "most": most, "narrow": variable.name, "type": variable.type}
    return {}


def _loop_of_launch(finding: Finding, source: Source) -> Finding:
    """The outermost loop around a launch that was not reached, and what sets its end; without one, what returns before
    it if a quotient is 0."""
    file, line = finding.file or "", finding.line or 0
    if loops := source.loops_around(file, line):
        loop = loops[0]
        return finding.with_facts(loop_line=loop.line, **_end_of(source, loop))
    function = source.function_at(file, line)
    before = [b for b in source.branches if b.leaves and b.end < line and function and function.holds(b.file, b.line)]
    for branch in before:
        if end := _end_of(source, branch):
            return finding.with_facts(leave_line=branch.line, **end)
    return finding


OF_WRONG_VALUES: dict[str, tuple[Callable[[Finding, Source], Finding], ...]] = {
    "terms_missing": (_loop_of_sum,),
    "other_input": (_pointers,),
    "other_unit_read": (_pointers,),
    "carried_over": (_start_of_sum,),
    "never_written": (_grid,),
    "launch_not_reached": (_loop_of_launch,),
}
