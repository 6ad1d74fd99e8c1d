"""The likeliest cause among a run's findings, as the first sentence of a failed test's report.

The sentence says where, what, and what to do, and leaves out consequences. A race between warps is the first suspect: a
kernel with such a race reads values that are not written yet, and its other findings may be consequences. A race within
one warp is the last suspect, because a GPU mostly runs the lanes of a warp in lockstep.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from grader.profiling.kernel_profile import short_name
from grader.programs.build import handed_in_name
from grader.programs.trace import Diagnostic, Race
from grader.sanitizers.barriers import Gap, find_gap
from grader.sanitizers.origins import NO_SIZEOF, calls_of_helper, origin_of_index, with_origin
from grader.sanitizers.triton_words import in_triton, is_python

SourceLine = Callable[[str, int], str]
"""Returns the text of a line of the submission, '' if there is none. Arguments: the file's submitted name, the line's
number."""


def no_source(file: str, line: int) -> str:
    """A `SourceLine` for when no source is available."""
    return ""


_AFTER_A_FAULT = 2
"""The rank of a race that is found after a bad access: a kernel built with checks goes on with a wrong value."""
LUCK = "On a GPU this can pass by luck."
_VERBS = {
    "read": "reads",
    "write": "writes",
    "atomic update": "updates",
    "asynchronous write": "copies (cp.async) into",
}
_OF_WHOM = {"blocks": "block", "warps": "warp", "lanes": "thread of the same warp"}
_BARRIERS = {"warps": "__syncthreads()", "lanes": "__syncwarp()"}
_DID = ("wrote ", "read ", "updated ")
"""A message that begins with one of these words continues the sentence that begins with the thread's place
(grader/emulator/runtime/report.c has the same words)."""
_ALLOCATION = re.compile(r"the (?P<bytes>\d+) bytes of cuda(?:Malloc|HostAlloc)\w* at (?P<file>[^\s:]+):(?P<line>\d+)")
_CALL_LINES = 3
_LONG_NUMBER = re.compile(r"\b\d{7,}(?= bytes)")
_REFUSED_LAUNCH = re.compile(r"cuda\w+: the launch of kernel (?P<kernel>.+?) (?P<why>was refused: .*)", re.DOTALL)
_ELEMENT = re.compile(r"\b([A-Za-z_]\w*)\s*((?:\[[^\[\]]*\])+)")
_POINTER = re.compile(
    r"\bcuda(?:Malloc|HostAlloc)\w*\s*\(\s*(?:\([^()]*\)\s*)?&\s*(?P<pointer>[A-Za-z_][\w.\[\]>-]*)"
    r"|^\s*(?P<array>[A-Za-z_]\w*)\s*=\s*(?:empty|zeros|from_numpy)\("
)


def cause_of(diagnostics: Iterable[Diagnostic], source_line: SourceLine = no_source) -> str:
    """The sentences that name the likeliest cause; '' if no finding can be a cause."""
    suspects, faulty = list[tuple[int, Diagnostic]](), False
    for found in without_echoes(diagnostics):
        if (rank := _rank(found)) is not None:
            suspects.append((_AFTER_A_FAULT if faulty and rank == 0 else rank, found))
        faulty |= found.severity == "error" and found.tool == "memory" and found.kernel is not None
    return sentence(min(suspects, key=lambda suspect: suspect[0])[1], source_line) if suspects else ""


def race_of(diagnostics: Iterable[Diagnostic], source_line: SourceLine = no_source) -> str:
    """Like `cause_of`, but only for races."""
    return cause_of((found for found in diagnostics if found.race is not None), source_line)


def without_echoes(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Leave out a race within a warp if its two lines also race between warps or blocks, because the barrier for that
    race also separates the lanes."""
    found = tuple(diagnostics)
    wide = {_pair(each, each.race) for each in found if each.race is not None and each.race.between != "lanes"}
    return tuple(
        each
        for each in found
        if each.race is None or each.race.between != "lanes" or _pair(each, each.race) not in wide
    )


def sentence(found: Diagnostic, source_line: SourceLine = no_source) -> str:
    """Describe one finding for a student."""
    said = _sentence(found, source_line)
    return in_triton(said) if is_python(found.file) else said


def _sentence(found: Diagnostic, source_line: SourceLine) -> str:
    if found.race is not None:
        return _race(found, found.race, source_line)
    advice = f" {found.advice}" if found.advice else ""
    if refused := _REFUSED_LAUNCH.match(found.message):
        kernel, why = short_name(refused["kernel"]), refused["why"].rstrip(". ")
        return f"{place(found)}the launch of kernel {kernel} {why}.{advice}"
    message = _ALLOCATION.sub(lambda said: _allocated(said, source_line), found.message.rstrip(". "))
    message = with_origin(found, _LONG_NUMBER.sub(lambda digits: f"{int(digits[0]):,}", message), source_line)
    if NO_SIZEOF in message:
        advice = ""  # the advice is about the index, which is right
    return f"{place(found)}{message}.{advice}"


def _allocated(said: re.Match[str], source_line: SourceLine) -> str:
    """The text for "the 4096 bytes of cudaMalloc at kernel.cu:107", with the program's name for this memory if it is
    found."""
    size, file, line = said["bytes"], said["file"], int(said["line"])
    named = _pointer(file, line, source_line)
    return f"`{named}` ({size} bytes, allocated at {file}:{line})" if named else said[0]


def _pointer(file: str, line: int, source_line: SourceLine) -> str:
    """The pointer or array that the allocation at `line` sets; all of them if the line has several allocations, '' if
    none is found. The call may span a few lines."""
    calls = list(_POINTER.finditer(source_line(file, line)))
    if not calls:
        calls = list(_POINTER.finditer(" ".join(source_line(file, line + more) for more in range(_CALL_LINES))))[:1]
    return "` or `".join(call["pointer"] or call["array"] for call in calls)


def place(found: Diagnostic) -> str:
    """ "main.cu:60: kernel attention, thread (3,0,0) of block (0,0,0): ", without the parts that are unknown. The last
    colon is left out if the message continues the sentence."""
    where = f"{handed_in_name(found.file)}:{found.line}: " if found.file else ""
    if not found.kernel:
        return where
    thread = (
        f", thread {dim_text(found.thread)} of block {dim_text(found.block)}" if found.thread and found.block else ""
    )
    return f"{where}kernel {short_name(found.kernel)}{thread}{' ' if found.message.startswith(_DID) else ': '}"


def dim_text(dim: tuple[int, int, int]) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})"


def _rank(found: Diagnostic) -> int | None:
    """The finding's rank among the suspects, 0 first; None if it is no suspect."""
    if found.race is not None:
        return 4 if found.race.between == "lanes" else 0 if found.severity == "error" else 2
    if found.severity == "error" and found.tool in ("race", "memory", "sync"):
        return 0 if found.tool == "race" else 1  # "race" without `race`: with an asynchronous operation
    if found.tool == "api" and found.line and "was refused" in found.message:
        return 1  # a refused allocation or launch leads to null pointers and unwritten values
    return 3 if found.tool == "init" else None


def _pair(found: Diagnostic, race: Race) -> frozenset[tuple[str | None, int | None]]:
    return frozenset({(found.file, found.line), (race.file, race.line)})


def _race(found: Diagnostic, race: Race, source_line: SourceLine) -> str:
    places = ((found.file or "", found.line or 0), (race.file, race.line))
    here, there = (f"{handed_in_name(file)}:{line}{calls_of_helper(file, line, source_line)}" for file, line in places)
    variable, does, other = (
        _variable(found, race, source_line),
        _VERBS.get(race.does, race.does),
        _VERBS.get(race.other, ""),
    )
    if race.between == "copy":
        said = f"{here} {does} {variable} while the asynchronous copy to it, begun at {there}, is in progress"
        return f"Race: {said}. {found.advice} {LUCK}"
    whom = _OF_WHOM[race.between]
    at = "at the same line" if here == there else f"at {there}"
    if race.between != "blocks" and (layouts := _two_layouts(found, race, source_line)):
        said = f"{here} {does} {variable} where another {whom} {other} it {at}"
        return (
            f"Race: {said}, with another index: {layouts}. If each thread uses only its own values, both indices must "
            f"be the same; if threads use values of others, put {_BARRIERS[race.between]} between the two lines."
        )
    if here == there:
        origin = origin_of_index(found, source_line) if race.between == "blocks" and found.line else ""
        return f"Race: {here} {does} {variable} while another {whom} {other} it {at}{origin}. {found.advice} {LUCK}"
    said = f"{here} {does} {variable} while another {whom} still {other} it {at}"
    if race.between == "blocks":
        origin = origin_of_index(found, source_line) if found.line else ""
        return f"Race: {said}, and no block waits for another{origin}. {found.advice} {LUCK}"
    same_file = found.file == race.file
    wait = "wait for the copy (__pipeline_wait_prior(0)), then " if race.other == "asynchronous write" else ""
    barrier = _BARRIERS[race.between]
    gap = find_gap(source_line, handed_in_name(race.file), found.line or 0, race.line) if same_file else Gap()
    if gap.branch is not None:
        return (
            f"Race: {said}. The barrier at {handed_in_name(race.file)}:{gap.present} does not separate them: it is in "
            f"the `if` of line {gap.branch}, which some threads do not enter. Move it behind the `if`. {LUCK}"
        )
    if gap.closes is not None:
        return (
            f"Race: {said.replace(' still ', ' ')} in another pass of the loop. The barrier at line {gap.present} "
            f"separates them within one pass only: {wait}put {barrier} at the end of the loop, before "
            f"{handed_in_name(race.file)}:{gap.closes} closes it. {LUCK}"
        )
    after = f", after line {gap.after}" if gap.after is not None else ""
    if not gap.looped and (found.line or 0) < race.line and other == "reads":  # the earlier line writes the value
        said = f"{there} reads {variable} while another {whom} still {does} it at {here}"
    return f"Race: {said}; {wait}put {barrier} between them{after}. {LUCK}"


def _two_layouts(found: Diagnostic, race: Race, source_line: SourceLine) -> str:
    """Two elements of one array, like `tile[row][key]` and `tile[key][row]`, that the two lines index with the same
    variables in different ways; '' if there are none. One of the indices is probably wrong, even with a barrier between
    the lines."""
    if found.file is None or found.line is None or race.line is None or found.file != race.file:
        return ""
    file = handed_in_name(found.file)
    ours, theirs = (_indexed(source_line(file, line)) for line in (found.line, race.line))
    return next(
        (
            f"`{array}{mine}` and `{array}{other}`"
            for array in sorted(ours.keys() & theirs.keys())
            for mine in ours[array]
            for other in theirs[array]
            if _summands(mine) != _summands(other) and _variables(mine) == _variables(other)
        ),
        "",
    )


def _indexed(line: str) -> dict[str, list[str]]:
    """The indices, like "[row][key]", with which a line uses each array."""
    found: dict[str, list[str]] = {}
    for name, index in _ELEMENT.findall(line):
        found.setdefault(name, []).append(index)
    return found


def _variables(index: str) -> frozenset[str]:
    """The names in an index other than constants, which are written in capitals."""
    return frozenset(name for name in re.findall(r"[A-Za-z_]\w*(?:\.\w)?", index) if not name.isupper())


def _summands(index: str) -> list[list[list[str]]]:
    """An index as sums of products in a fixed order. Added numbers are left out, so that neighbouring elements have
    equal sums."""
    parts = re.findall(r"\[([^\]]*)\]", index)
    terms = ([term.strip() for term in re.split(r"[+-]", part) if not term.strip().isdigit()] for part in parts)
    return [sorted(sorted(factor.strip() for factor in term.split("*")) for term in each) for each in terms]


def _variable(found: Diagnostic, race: Race, source_line: SourceLine) -> str:
    """The variable involved in the race: its name, or else the place of its allocation. For dynamic shared memory, the
    name of the only array that both lines use."""
    if race.variable:
        lines = [
            source_line(handed_in_name(file or ""), line or 0)
            for file, line in ((found.file, found.line), (race.file, race.line))
        ]
        shared = _indexed(lines[0]).keys() & _indexed(lines[1]).keys()
        if len(shared) == 1 and not any(re.search(rf"\b{race.variable}\b", line) for line in lines):
            return f"`{shared.pop()}`"
        return f"`{race.variable}`"
    if not race.allocated_in:
        return "memory"
    file = handed_in_name(race.allocated_in)
    named = _pointer(file, race.allocated_at, source_line)
    return f"`{named}`" if named else f"memory allocated at {file}:{race.allocated_at}"
