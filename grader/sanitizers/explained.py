"""Adds to a finding what the source explains of it: the name of the memory, where a missing barrier belongs, the guard
or the pointer that lets an access go too far, the lines that call a helper function, the launch with too little shared
memory. These are facts with lines, too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

from pydantic import Field

from grader.cpp.reading import Files as Files
from grader.cpp.reading import asked, read_source
from grader.cpp.solve import written_in
from grader.cpp.source import Assigned, Source, Use, Variable, line_of
from grader.findings import Finding, Place, claimed, kind_of, sentence
from grader.programs.function_contract import ARGUMENT, MAIN
from grader.programs.trace.reader import MAX_FINDINGS
from grader.sandbox.room import confined
from grader.sanitizers.behind import OF_WRONG_VALUES, declared
from grader.sanitizers.gap import missing_barrier

_MOST_LINES = 3
_ALLOCATES = ("cudaMalloc", "cudaHostAlloc", "malloc")
_IN_KERNELS = ("memory", "race", "init", "sync", "watch")
_WORD = re.compile(r"[A-Za-z_]\w*")
_ASSIGNED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_TOO_FAR = re.compile(r"(\w+)\s*>\s*(\w[\w.* ]*?)\s*(?:$|\|\|)")
_ONE_MORE = re.compile(r"(\w+)\s*<=\s*(\w[\w.* ]*?)\s*(?:$|&&)")


def explained(findings: Sequence[Finding], files: Files) -> tuple[Finding, ...]:
    """The findings with what the source adds to each; unchanged if that takes too long, as only hostile sources do."""
    return tuple(asked(list(findings), _explained, files, findings)) if findings else ()


def likeliest(findings: Iterable[Finding]) -> Finding | None:
    """The finding that is the likeliest cause; None if none can be one."""
    return claimed([[found for found in findings if found.file or kind_of(found).check != "api"]])


def said_of(finding: Finding, files: Files = ()) -> str:
    """Describe one finding for a student, with what the source explains of it."""
    return sentence(explained([finding], files)[0], partial(line_of, files))


@confined(cpu_s=5, memory_bytes=2 << 30, answer_bytes=4 << 20)
def _explained(files: Files, findings: Sequence[Finding]) -> Annotated[list[Finding], Field(max_length=MAX_FINDINGS)]:
    """In the room."""
    source = read_source(files)
    return [_explained_by(source, files, finding) for finding in findings]


def _explained_by(source: Source, files: Files, finding: Finding) -> Finding:
    finding = _named(_argument(finding, source), source, files)
    for explain in (_unhoisted, _called, _barrier, *_OF_KIND.get(finding.kind, ())):
        finding = explain(finding, source)
    return finding


def _argument(finding: Finding, source: Source) -> Finding:
    """Memory that the grader's own main allocated is an argument of `solve`; lines of that main are left out."""
    if finding.allocated is not None and finding.allocated.file.startswith(ARGUMENT):
        name = finding.allocated.file.removeprefix(ARGUMENT)
        finding = finding.model_copy(update={"array": name, "allocated": None}).with_facts(of="argument")
    if finding.place is not None and finding.place.file == MAIN:
        words = {key: word for key, word in finding.words.items() if key != "function"} | {"how": "argument"}
        finding = finding.model_copy(update={"file": None, "line": None, "words": words})
        if finding.kind == "never_written" and (found := written_in(source, finding.array or "")) is not None:
            launch, line = found
            finding = finding.model_copy(update={"file": launch.file, "line": launch.line}).with_facts(at=line)
        elif finding.kind == "never_written" and finding.values.get("count") == finding.values.get("bytes"):
            finding = finding.with_facts(how="nothing")
    return finding


def _named(finding: Finding, source: Source, files: Files) -> Finding:
    """The program's name for the memory: of an allocation, the pointer that the call sets; of dynamic shared memory,
    the name of the only array that both lines of a race use."""
    if finding.array is None and finding.allocated is not None:
        name = _pointer(source, files, finding.allocated)
        return finding.model_copy(update={"array": name}) if name else finding
    if finding.words.get("of") == "dynamic" and finding.place and finding.other:
        here, there = ({use.name for use in _uses(source, place)} for place in (finding.place, finding.other))
        if len(here & there) == 1 and finding.array not in here | there:
            return finding.model_copy(update={"array": (here & there).pop()})
    return finding


def _unhoisted(finding: Finding, source: Source) -> Finding:
    """A read that the compiler moved out of a loop has the line of the loop's header. Its line is the one in the loop
    that uses the array, if only one does."""
    uses = [use for use in source.uses if use.name == finding.array]

    def moved(place: Place | None) -> Place | None:
        if place is None or any(use.holds(place.file, place.line) for use in uses):
            return place
        loops = [loop for loop in source.loops if (loop.file, loop.line) == (place.file, place.line)]
        lines = {use.line for use in uses for loop in loops if loop.holds(use.file, use.line)}
        return Place(file=place.file, line=lines.pop()) if len(lines) == 1 else place

    here = moved(finding.place)
    line = here.line if here is not None else finding.line
    return finding.model_copy(update={"line": line, "other": moved(finding.other)})


def _pointer(source: Source, files: Files, place: Place) -> str:
    if place.file.endswith(".py"):
        assigned = _ASSIGNED.match(line_of(files, place.file, place.line))
        return assigned[1] if assigned is not None else ""
    made = [c for c in source.calls if c.holds(place.file, place.line) and c.name.startswith(_ALLOCATES)]
    names = [re.sub(r"^(?:\([^()]*\)|[&*\s])+", "", call.arguments[0]) for call in made if call.arguments]
    return "` or `".join(dict.fromkeys(names))


def _called(finding: Finding, source: Source) -> Finding:
    """The lines that call the helper functions in which a finding is, or the other side of a race."""
    sides = [("here", finding.place)] if kind_of(finding).check in _IN_KERNELS else []
    for side, place in (*sides, ("there", finding.other if "between" in finding.words else None)):
        function = source.function_at(place.file, place.line) if place is not None else None
        if function is not None and function.space == "device":
            lines = tuple(call.line for call in source.calls if call.name == function.name)[:_MOST_LINES]
            finding = finding.with_facts(**{f"called_{side}": lines}) if lines else finding
    return finding


def _barrier(finding: Finding, source: Source) -> Finding:
    """Where the barrier of a race between threads of a block belongs, or why the one that is there does not help."""
    here, there, how = finding.place, finding.other, finding.words.get("how")
    if how not in ("barrier", "after_copy", "blocks") or here is None:
        return finding
    if there is not None and here.file == there.file and (_takes(source, here, there) or _takes(source, there, here)):
        return finding.with_facts(how="check")
    if how == "blocks":
        return _origin_of_index(finding, source)
    if there is None or here.file != there.file:
        return finding
    one, other = _line_in_the_function_of(source, here, there), _line_in_the_function_of(source, there, here)
    facts = missing_barrier(source, here.file, one, other)
    looped = any(loop.holds(here.file, other) for loop in source.loops_around(here.file, one))
    finding = finding.with_facts(**facts)
    if "after" in facts and not looped and here.line < there.line and finding.words.get("other_does") == "read":
        return _turned(finding, here, there)  # the earlier line writes the value
    return finding


def _takes(source: Source, look: Place, change: Place) -> bool:
    """Whether a line looks at an element that a line of its `if` changes, as threads do that take what is free. The
    element's place is read from an array, so threads meet there by chance, and no barrier keeps them apart."""
    inside = any(b.line == look.line < change.line <= b.end for b in source.branches if b.file == look.file)
    items: list[Variable | Assigned] = [*source.variables, *source.assignments]
    read = {each.name for each in items if "[" in each.value and not each.name.isupper()}  # capitals are constants
    looked, changed = ({use.name + use.index for use in _uses(source, place)} for place in (look, change))
    return inside and any(read.intersection(_WORD.findall(use)) for use in looked & changed)


def _line_in_the_function_of(source: Source, place: Place, other: Place) -> int:
    """The line of a place as the function of the other place has it: where that calls the helper function that the
    place is in, if it does so once; else the place's own line."""
    helper, caller = (source.function_at(each.file, each.line) for each in (place, other))
    if helper is None or caller is None or helper == caller:
        return place.line
    calls = [c.line for c in source.calls if c.name == helper.name and caller.holds(c.file, c.line)]
    return calls[0] if len(calls) == 1 else place.line


def _turned(finding: Finding, here: Place, there: Place) -> Finding:
    turned = finding.model_copy(update={"file": there.file, "line": there.line, "other": here})
    return turned.with_facts(does=finding.words.get("other_does", ""), other_does=finding.words.get("does", ""))


def _uses(source: Source, place: Place) -> Iterator[Use]:
    return (use for use in source.uses if use.holds(place.file, place.line))


def _unwritten(finding: Finding, source: Source) -> Finding:
    """The loops around the line that stores a part of the array; the line at which threads had returned."""
    file, line, stores = finding.file or "", finding.line or 0, finding.values.get("stores")
    loops = source.loops_around(file, stores)[-2:] if isinstance(stores, int) else []
    function = source.function_at(file, line)
    early = [r.line for r in source.returns if function and function.holds(r.file, r.line) and r.line < line]
    facts: dict[str, object] = {"loops": tuple(loop.line for loop in loops)} if loops else {}
    return finding.with_facts(**facts, **({"return_line": min(early)} if early else {}))


def _not_copied(finding: Finding, source: Source) -> Finding:
    """The copy to the device that should have written what is read."""
    copies = [call for call in source.calls if "cudaMemcpyHostToDevice" in call.arguments]
    filling = [call for call in copies if finding.array and _WORD.findall(call.arguments[0])[:1] == [finding.array]]
    if len(filling) != 1:
        return finding
    at = Place(file=filling[0].file, line=filling[0].line)
    return finding.model_copy(update={"other": at}).with_facts(how="copied")


def _past_dynamic(finding: Finding, source: Source) -> Finding:
    """The launch that asked for the dynamic shared memory, and where its size is computed."""
    function = source.function_at(finding.file or "", finding.line or 0)
    launch = next((each for each in source.launches if function and each.name == function.name), None)
    if launch is None:
        return finding
    words = {"launch": f"{launch.file}:{launch.line}"}
    size = " ".join(launch.configuration[2:3])
    made = [each for each in declared(source, size, launch.file, launch.line) if each.name == size]
    words |= {"computed": f"{made[0].file}:{made[0].line}"} if made else {}
    return finding.with_facts(**words)


def _origin_of_index(finding: Finding, source: Source) -> Finding:
    """What lets an access go too far: a guard that is one too loose, or the lines that set the pointer and the
    index."""
    place = finding.place
    function = source.function_at(place.file, place.line) if place is not None else None
    if place is None or function is None:
        return finding

    def before(file: str, line: int) -> bool:
        return function.holds(file, line) and line <= place.line

    if loose := next(_loose(source, before), None):
        return finding.with_facts(**loose)
    names = {name for use in _uses(source, place) for name in (use.name, *_WORD.findall(use.index))}
    items: list[Variable | Assigned] = [*source.variables, *source.assignments]
    set_here = [each for each in items if each.name in names and each.value and each.line < place.line]
    settings = [each for each in set_here if before(each.file, each.line)]
    of_places = [each for each in settings if _places(each)]
    last = {name: line for line, name in sorted((each.line, each.name) for each in of_places or settings)}
    found = sorted((line, name) for name, line in last.items())[:2]
    for prefix, (line, name) in zip(("", "other_"), found, strict=False):
        finding = finding.with_facts(**{f"{prefix}set_line": line, f"{prefix}set_name": name})
    return finding


def _places(item: Variable | Assigned) -> bool:
    """Whether what sets a variable decides where a thread works: it depends on the block, or moves a pointer."""
    moves = item.pointers > 0 if isinstance(item, Variable) else item.operator == "+="
    return moves or "blockIdx" in item.value


def _loose(source: Source, before: Callable[[str, int], bool]) -> Iterator[dict[str, object]]:
    """Guards such as `if (row > n) return;` that let the number of a thread be one too large, and loops such as
    `for (key = 0; key <= n; …)`."""
    of_threads = {v.name for v in source.variables if "blockIdx" in v.value or "threadIdx" in v.value}
    guards = [(b, _TOO_FAR.search(b.condition), ">=") for b in reversed(source.branches) if b.leaves]
    loops = [(loop, _ONE_MORE.search(loop.condition), "<") for loop in reversed(source.loops)]
    for item, found, sign in (*guards, *loops):
        fits = found and (found[1] in of_threads if sign == ">=" else not found[2].isdigit())
        if found and fits and before(item.file, item.line):
            yield {"loose_line": item.line, "loose_name": found[1], "loose_end": found[2], "loose_sign": sign}


_OF_KIND = OF_WRONG_VALUES | {
    "unwritten_shared": (_unwritten,),
    "uninitialised": (_not_copied,),
    "past_dynamic_shared": (_past_dynamic,),
    "past_the_end": (_origin_of_index,),
    "before_start": (_origin_of_index,),
}
