"""Finds what an assignment forbids in a submission's source.

The grader looks for headers, calls and assembly in the output of nvcc's preprocessor, so a macro hides nothing and a
comment breaks no rule. Only the student's own lines are searched, not the toolkit's headers: `preprocessor` tells them
apart. A line directive breaks any rule, since it names another origin of the lines after it. The output does not show
#embed, so that is read from the files themselves. A call is a name, with or without template arguments or parentheses
around it, before an opening parenthesis; a call through a pointer is not seen. All of this is read in the room.

The preprocessor runs with the flags of the build and for its architecture. A source that cannot be examined, because it
is too long, takes too long or fails in the preprocessor, is refused if any rule has the action `refuse`: the compiler
could see code that we did not.

A rule is about the text, not about what the program does: the sandbox keeps programs from doing harm, no matter what
they call.
"""

from __future__ import annotations

import bisect
import codecs
import fnmatch
import hashlib
import io
import itertools
import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cudaemu.process import Stopped
from grader.base.sizes import Whole
from grader.course.assignment import Assignment, SourceRule
from grader.cpp.calls import Found, calls_in
from grader.programs import preprocessor as origins
from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.preprocessor import Line, Places, Preprocessor, own_lines
from grader.programs.submission import Submission
from grader.programs.toolkit import find_toolkit
from grader.sandbox import quarantine
from grader.sandbox.budget import Budget, drawing
from grader.sandbox.cache import kept
from grader.sandbox.room import AtLimit, Unreadable, confined, shortened
from grader.sandbox.scratch import scratch_folder

_MAX_BYTES = 128 << 20
_MAX_LINES = 500_000
"""Limit on the student's own lines: each takes about 300 bytes of memory, and a file can be included many times."""
_MAX_FOUND = 20
"""Limit on the violations reported for one rule in one source."""
_MAX_VIOLATIONS = 1000
_MOST_QUOTED = 5
_MAX_WHAT, _MAX_WHY = 300, 1000
_CPU_S, _MEMORY_BYTES, _ANSWER_BYTES = 60, 4 << 30, 256 << 20
_TEXT = (
    r'(?<!\w)(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\((?s:.*?)(?:\)(?P=end)"|\Z)'
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|(?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'?"
)
"""String literals (also raw ones) and character literals. An unclosed literal ends with its line, since a search for
its end from every quotation mark could take hours."""
_LITERAL = re.compile(_TEXT)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)")
_INCBIN = re.compile(r"\.incbin", re.IGNORECASE)
_ASSEMBLY = ("asm", "__asm__", "__asm")
_TRITON_ASSEMBLY = b"inline_asm_elementwise"
_EMBED = re.compile(r"^\s*(?:#|%:|\?\?=)\s*embed\b(.*)")
_COMMENT = re.compile(rf"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|{_TEXT}")
_ORIGIN = "the grader could not tell whose they are; remove the #line directive, or include the header by its name"
_PASSES = ((), ("-U__CUDA_ARCH__",))
"""nvcc -E shows what the device compiler sees; without that macro, it shows what the host compiler sees."""


class Violation(BaseModel):
    """A line that breaks a rule. `refused`: the submission is not graded because of this line. `unexamined`: the source
    could not be examined, which does not matter if it does not compile; `certain`: it never can, since it exceeds a
    limit that is the same on all machines."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Annotated[str, Field(max_length=_MAX_WHAT)]
    line: Whole
    what: Annotated[str, Field(max_length=_MAX_WHAT)]
    why: Annotated[str, Field(max_length=_MAX_WHY)]
    refused: bool
    unexamined: bool = False
    certain: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}, which this assignment forbids: {self.why}."


_Violations = Annotated[list[Violation], Field(max_length=_MAX_VIOLATIONS)]
_FOUND = TypeAdapter(_Violations)


def violations(submission: Submission, assignment: Assignment, engine: Engine) -> tuple[Violation, ...]:
    """The places where `submission`, built for `engine`, breaks the assignment's source rules, in the order of files
    and lines. The result is cached like a build."""
    if submission.is_python:
        return tuple(_python_violations(submission, assignment))
    if not assignment.source_rules:
        return ()
    rules = json.dumps([rule.model_dump() for rule in assignment.source_rules])
    implementation = "".join(Path(module).read_text(encoding="utf-8") for module in (__file__, origins.__file__))
    parts = (
        submission.sha256,
        *submission.sources,
        "flags",
        *submission.flags,
        rules,
        *_architecture(engine),
        find_toolkit().version,
        implementation,
    )

    def make(folder: Path) -> Path:
        broken = list(_look(submission, assignment, engine))
        if any(each.unexamined and not each.certain for each in broken):
            raise _NotKept(broken)
        found = folder / "found.json"
        found.write_bytes(_FOUND.dump_json(broken))
        return found

    try:
        looked_up = kept("rules", f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}.json", make)
    except _NotKept as unexamined:
        return unexamined.broken
    return tuple(_FOUND.validate_json(looked_up.read_bytes()))


class _NotKept(Exception):
    """Something was not examined, perhaps because of the machine, so the next grading looks again."""

    def __init__(self, broken: Sequence[Violation]) -> None:
        self.broken = tuple(broken)


def refusal(broken: Sequence[Violation], *, built: bool) -> str:
    """The sentences with which a submission is refused; '' if it is not. `built` says whether it compiles; if not,
    sentences on sources that could not be examined are left out."""
    refused = [each for each in broken if each.refused and (built or not each.unexamined)]
    return " ".join(map(str, refused[:_MOST_QUOTED]))


def _architecture(engine: Engine) -> tuple[str, ...]:
    """The flags for the architecture that the engine builds for; macros let a source depend on it."""
    match engine:
        case CudaEngine():
            name = engine.gpu.architecture
        case EmulatorEngine():
            name = engine.target.removeprefix("sm_")
        case _:
            return ()
    return ("-gencode", f"arch=compute_{name},code=compute_{name}")


def _python_violations(submission: Submission, assignment: Assignment) -> Iterator[Violation]:
    """Python's kernels can break one rule only: no inline assembly."""
    for rule in assignment.source_rules:
        for file, content in submission.files if rule.forbid == "inline_assembly" else ():
            numbers = (n for n, line in enumerate(content.split(b"\n"), 1) if _TRITON_ASSEMBLY in line)
            for number in itertools.islice(numbers, _MAX_FOUND):
                yield _violation(rule, file, number, "uses inline assembly")


def _look(submission: Submission, assignment: Assignment, engine: Engine) -> Iterator[Violation]:
    refuses = any(rule.action == "refuse" for rule in assignment.source_rules)
    seen: set[tuple[str, int, str]] = set()
    budget = Budget(assignment.build.limit_s, "examining it")
    try:
        embeds = [rule for rule in assignment.source_rules if rule.forbid == "incbin"]
        with drawing(budget):
            found = [*_embedded(submission.files, embeds), *_preprocessed(submission, assignment, engine, budget)]
    except Stopped as stopped:
        what = f"was not examined: {str(stopped).rstrip('.')}"
        found = [_unexamined(submission.sources[0], what, refuses, certain=budget.is_spent)]
    except Unreadable as unreadable:
        certain = isinstance(unreadable, AtLimit)
        found = [_unexamined(submission.sources[0], str(unreadable), refuses, certain=certain)]
    for violation in found:
        place = (violation.file, violation.line, violation.what)
        if place not in seen:
            seen.add(place)
            yield violation


def _unexamined(file: str, why: str, refused: bool, *, certain: bool = False) -> Violation:
    what = "code that cannot be examined may contain anything; simplify it"
    return _found(file, 1, why, what, refused).model_copy(update={"unexamined": True, "certain": certain})


def _found(file: str, line: int, what: str, why: str, refused: bool) -> Violation:
    return Violation(
        file=shortened(file, _MAX_WHAT),
        line=line,
        what=shortened(what, _MAX_WHAT),
        why=shortened(why, _MAX_WHY),
        refused=refused,
    )


@confined(cpu_s=_CPU_S, memory_bytes=_MEMORY_BYTES, answer_bytes=_ANSWER_BYTES)
def _embedded(files: Sequence[tuple[str, bytes]], rules: Sequence[SourceRule]) -> _Violations:
    """The #embed directives in the files as handed in."""
    found: list[Violation] = []
    for rule, (name, content) in itertools.product(rules, files):
        plain = content.removeprefix(codecs.BOM_UTF8).replace(b"\0", b" ").decode(errors="replace")
        text = _COMMENT.sub(_blank_comment, _unspliced(plain))
        matches = ((number, _EMBED.match(line)) for number, line in enumerate(text.split("\n"), 1))
        each = (_violation(rule, name, n, f"embeds {match.group(1).strip()}") for n, match in matches if match)
        found += itertools.islice(each, _MAX_FOUND)
    return found[:_MAX_VIOLATIONS]


def _unspliced(text: str) -> str:
    """`text` with continued lines joined, which is the compiler's first step. The number of lines stays the same."""
    made, pending = [], 0
    for line in text.split("\n"):
        bare = line.rstrip(" \t\r\f\v")
        if bare.endswith(("\\", "??/")):
            made.append(bare[:-1] if bare.endswith("\\") else bare[:-3])
            pending += 1
        else:
            made.append(line + "\n" * (1 + pending))
            pending = 0
    return "".join(made)


def _blank_comment(match: re.Match[str]) -> str:
    """Replace a comment with its line breaks; leave a string or character literal as it is."""
    text = match.group(0)
    return "\n" * text.count("\n") if text.startswith("/") else text


def _preprocessed(
    submission: Submission, assignment: Assignment, engine: Engine, budget: Budget
) -> Iterator[Violation]:
    rules = assignment.source_rules
    refuses = any(rule.action == "refuse" for rule in rules)
    with scratch_folder("rules") as folder:
        files, product = folder / "files", folder / "build"
        files.mkdir()
        product.mkdir()
        preprocessor = Preprocessor(submission, files, product, budget)
        for number, (name, more) in enumerate(itertools.product(submission.sources, _PASSES)):
            made = f"preprocessed{number}"
            if not preprocessor.preprocess(name, (*submission.flags, *_architecture(engine), *more), made):
                yield _unexamined(name, "fails in the preprocessor, which these rules need", refuses)
                continue
            try:
                with quarantine.open_file(product, made, _MAX_BYTES) as file:
                    yield from judge_file(file, preprocessor.places, rules)
            except quarantine.Refused as refused:
                yield _unexamined(name, f"after preprocessing, {refused}: too much to examine", refuses, certain=True)


@confined(cpu_s=_CPU_S, memory_bytes=_MEMORY_BYTES, answer_bytes=_ANSWER_BYTES)
def judge_file(file: IO[bytes], places: Places, rules: Sequence[SourceRule]) -> _Violations:
    """Violations in the preprocessed `file`, in which `places` tell the origin of lines. In the room."""
    with io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="\n") as text:
        lines = list(itertools.islice(own_lines(text, places), _MAX_LINES))
    found = list(judge(lines, rules))
    if len(lines) == _MAX_LINES:
        what = f"has more than {_MAX_LINES:,} lines after preprocessing: the rest was not examined"
        refuses = any(rule.action == "refuse" for rule in rules)
        too_long = _found(lines[0].file, 1, what, "no honest program is that long", refuses)
        found.append(too_long.model_copy(update={"unexamined": True, "certain": True}))
    return found[-_MAX_VIOLATIONS:]


def judge(lines: Sequence[Line], rules: Sequence[SourceRule]) -> Iterator[Violation]:
    """Violations in preprocessed lines, the first few for each rule. See `judge_file`."""
    text = "\n".join(line.text for line in lines).encode(errors="replace")
    names = [{"call": rule.names, "inline_assembly": _ASSEMBLY}.get(rule.forbid, ()) for rule in rules]
    for rule, called in zip(rules, calls_in(text, names), strict=True):
        yield from itertools.islice(_broken(rule, lines, called), _MAX_FOUND)
    refuses = any(rule.action == "refuse" for rule in rules)
    absolute = any(rule.forbid == "absolute_include" for rule in rules)
    for line in itertools.islice((line for line in lines if line.named), _MAX_FOUND):
        if not (absolute and line.entered.startswith("/")):
            yield _found(line.file, line.number, f"names {line.named} as the origin of its lines", _ORIGIN, refuses)


def _broken(rule: SourceRule, lines: Sequence[Line], called: Sequence[Found]) -> Iterator[Violation]:
    match rule.forbid:
        case "header":
            for line in lines:
                if line.entered and (name := _matching_header(line.entered, rule.names)):
                    yield _violation(rule, line.file, line.number, f"includes {name}")
        case "absolute_include":
            for line in lines:
                if line.entered.startswith("/"):
                    yield _violation(rule, line.file, line.number, f"includes {line.entered}")
        case "call" | "inline_assembly":
            for found in called:
                what = f"calls {found.name}" if rule.forbid == "call" else "has inline assembly"
                yield _violation(rule, lines[found.line - 1].file, lines[found.line - 1].number, what)
        case "incbin":
            yield from _incbin(rule, lines)


def _incbin(rule: SourceRule, lines: Sequence[Line]) -> Iterator[Violation]:
    """Find `.incbin` in strings, also where adjacent literals and escape sequences make it. The line is the one with
    the literal in which it begins."""
    text = "\n".join(line.text for line in lines)
    line, counted = 0, 0
    for literals in _strings(text):
        ends = list(itertools.accumulate(len(content) for _, content in literals))
        for found in _INCBIN.finditer("".join(content for _, content in literals)):
            at, _ = literals[bisect.bisect_right(ends, found.start())]
            line, counted = line + text.count("\n", counted, at), at
            yield _violation(rule, lines[line].file, lines[line].number, "has .incbin in a string")


def _strings(text: str) -> Iterator[list[tuple[int, str]]]:
    """The strings in preprocessed text, each as its literals: where a literal begins, and its characters."""
    string: list[tuple[int, str]] = []
    end = 0
    for found in _LITERAL.finditer(text):
        if text[end : found.start()].strip() and string:
            yield string
            string = []
        whole, end = found[0], found.end()
        quote = whole.find('"')
        if quote < 0 or "'" in whole[:quote]:
            continue  # a character
        if found["end"] is not None:
            content = whole[whole.index("(") + 1 : -len(found["end"]) - 2]
        else:
            content = _ESCAPE.sub(_unescaped, whole[quote + 1 :].removesuffix('"'))
        string.append((found.start(), content))
    if string:
        yield string


def _unescaped(match: re.Match[str]) -> str:
    kind, digits = match[1][0], match[1][1:]
    if kind in "xuU" and digits:
        return chr(int(digits[-6:], 16) % 0x110000)
    return chr(int(match[1], 8) & 0xFF) if kind in "01234567" else kind


def _matching_header(path: str, patterns: Sequence[str]) -> str:
    """The end of an included path that matches a pattern, such as "cutlass/gemm.h"; '' if no pattern matches."""
    parts = Path(posixpath.normpath(path)).parts  # `cub/x/../y.cuh` is another spelling of `cub/y.cuh`
    for count in range(1, len(parts) + 1):
        tail = "/".join(parts[-count:])
        if any(fnmatch.fnmatch(tail, pattern) for pattern in patterns):
            return tail
    return ""


def _violation(rule: SourceRule, file: str, line: int, what: str) -> Violation:
    return _found(file, line, what, rule.why, rule.action == "refuse")
