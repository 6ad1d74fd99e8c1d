"""Finds what an assignment forbids in a submission's source.

The grader looks for headers, calls and assembly in the output of nvcc's preprocessor, so a macro hides nothing and a
comment breaks no rule. Line markers in that output lead back to the student's own lines. Only the student's files are
searched, not the toolkit's headers. The preprocessor's output does not show how an include was spelled, so that is read
from the files themselves. A call is a name, with or without template arguments or parentheses around it, before an
opening parenthesis; a call through a pointer is not seen. All of this is read in the room.

The preprocessor runs with the flags of the build and for its architecture. A source that cannot be examined, because it
is too long, takes too long or fails in the preprocessor, is refused if any rule has the action `refuse`: the compiler
could see code that we did not.

A rule is about the text, not about what the program does: the sandbox keeps programs from doing harm, no matter what
they call.
"""

from __future__ import annotations

import bisect
import fnmatch
import hashlib
import io
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from grader import sandbox
from grader.base.errors import MachineFault
from grader.base.sizes import Name, Whole
from grader.course.assignment import Assignment, SourceRule
from grader.cpp.calls import Found, calls_in
from grader.programs.compile_errors import first_line
from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.stubs import STUB_HEADERS
from grader.programs.submission import Submission
from grader.programs.toolkit import find_toolkit
from grader.sandbox import quarantine
from grader.sandbox.archive import MAX_MEMBERS
from grader.sandbox.cache import kept
from grader.sandbox.room import Blob, Unreadable, confined, shortened
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
_MARKER = re.compile(r'^# (\d{1,10}) "((?:[^"\\]|\\.)*)"((?: \d)*)')
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
_ABSOLUTE = re.compile(r'^\s*(?:#|%:|\?\?=)\s*(?:include|include_next|import|embed)\s*["<](/[^">\n]*)')
_EMBED = re.compile(r"^\s*(?:#|%:|\?\?=)\s*embed\b(.*)")
_COMPUTED = re.compile(rb"include[^\n\"<]*(?:\n|\Z)")
"""An include directive, or text that may become one, that does not name the file on its own line."""
_SYSTEM_HEADERS = ("/usr/include", "/usr/lib", "/usr/local/include", "/usr/local/cuda")
_COMMENT = re.compile(rf"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|{_TEXT}")
_SPLICE = rb"(?:\\|\?\?/)[ \t\f\v]*(?:\r?\n|\r)"
_LINE_DIRECTIVE = re.compile(
    rb"(?:\A|(?<=[\n\r]))((?:[^\n\r]*\*/)?[ \t\f\v]*(?:#|%:|\?\?=)"
    rb"(?:[ \t\f\v]|" + _SPLICE + rb"|/\*(?:[^*]|\*(?!/))*\*/)*)(?=\d|"
    + (rb"(?:" + _SPLICE + rb")*").join((b"l", b"i", b"n", b"e")) + rb"\b)"
)  # fmt: skip
"""`#line 1 "x.h"` and `# 1 "x.h"`, with which a file could claim that its lines come from another file. They count in
raw strings, too, and g++ makes a line end of a carriage return there."""
_PASSES = ((), ("-U__CUDA_ARCH__",))
"""nvcc -E shows what the device compiler sees; without that macro, it shows what the host compiler sees."""


class Violation(BaseModel):
    """A line that breaks a rule. `refused`: the submission is not graded because of this line. `unexamined`: the source
    could not be examined, which does not matter if it does not compile."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Annotated[str, Field(max_length=_MAX_WHAT)]
    line: Whole
    what: Annotated[str, Field(max_length=_MAX_WHAT)]
    why: Annotated[str, Field(max_length=_MAX_WHY)]
    refused: bool
    unexamined: bool = False

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}, which this assignment forbids: {self.why}."


_Violations = Annotated[list[Violation], Field(max_length=_MAX_VIOLATIONS)]
_FOUND = TypeAdapter(_Violations)


@dataclass(frozen=True, slots=True)
class Line:
    """A preprocessed line of the student's own files. `entered` is the header that it includes, or ''."""

    file: str
    number: int
    text: str
    entered: str = ""


def violations(submission: Submission, assignment: Assignment, engine: Engine) -> tuple[Violation, ...]:
    """The places where `submission`, built for `engine`, breaks the assignment's source rules, in the order of files
    and lines. The result is cached like a build."""
    if submission.is_python:
        return tuple(_python_violations(submission, assignment))
    if not assignment.source_rules:
        return ()
    rules = json.dumps([rule.model_dump() for rule in assignment.source_rules])
    implementation = Path(__file__).read_text(encoding="utf-8")
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
        if any(each.unexamined for each in broken):
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
    try:
        spelled, sources = _spelled(submission.files, assignment.source_rules)
        found = [*spelled, *_preprocessed(submission, sources, assignment, engine)]
    except Unreadable as unreadable:
        found = [_unexamined(submission.sources[0], str(unreadable), refuses)]
    for violation in found:
        place = (violation.file, violation.line, violation.what)
        if place not in seen:
            seen.add(place)
            yield violation


def _unexamined(file: str, why: str, refused: bool) -> Violation:
    what = "code that cannot be examined may contain anything; simplify it"
    return _found(file, 1, why, what, refused).model_copy(update={"unexamined": True})


def _found(file: str, line: int, what: str, why: str, refused: bool) -> Violation:
    return Violation(
        file=shortened(file, _MAX_WHAT),
        line=line,
        what=shortened(what, _MAX_WHAT),
        why=shortened(why, _MAX_WHY),
        refused=refused,
    )


Files = Sequence[tuple[str, bytes]]
_Files = Annotated[list[tuple[Name, Annotated[Blob, Field(max_length=_ANSWER_BYTES)]]], Field(max_length=MAX_MEMBERS)]


@confined(cpu_s=_CPU_S, memory_bytes=_MEMORY_BYTES, answer_bytes=_ANSWER_BYTES)
def _spelled(files: Files, rules: Sequence[SourceRule]) -> tuple[_Violations, _Files]:
    """Violations that show only in the files as handed in (the spelling of includes, and #embed), and the files without
    line directives."""
    found: list[Violation] = []
    for rule in rules:
        pattern = {"absolute_include": _ABSOLUTE, "incbin": _EMBED}.get(rule.forbid)
        if pattern is None:
            continue
        for name, content in files:
            text = _COMMENT.sub(_blank_comment, _unspliced(content.decode(errors="replace")))
            directive = "embeds" if rule.forbid == "incbin" else "includes"
            matches = ((number, pattern.match(line)) for number, line in enumerate(text.split("\n"), 1))
            each = (_violation(rule, name, n, f"{directive} {match.group(1).strip()}") for n, match in matches if match)
            found += itertools.islice(each, _MAX_FOUND)
    return found[:_MAX_VIOLATIONS], [(name, _LINE_DIRECTIVE.sub(rb"\1pragma ", content)) for name, content in files]


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
    submission: Submission, sources: Files, assignment: Assignment, engine: Engine
) -> Iterator[Violation]:
    toolkit, rules = find_toolkit(), assignment.source_rules
    refuses = any(rule.action == "refuse" for rule in rules)
    with scratch_folder("rules") as folder:
        source, product = folder / "source", folder / "build"
        source.mkdir()
        product.mkdir()
        submission.write_to(source)
        for name, content in sources:
            (source / name).write_bytes(content)
        run = sandbox.runner(assignment.build.limit_s, readable=(toolkit.root, STUB_HEADERS), writable=(product,))
        known = (str(toolkit.root), str(toolkit.root.resolve()), *_SYSTEM_HEADERS, str(STUB_HEADERS))
        computed = tuple(name for name, content in sources if _COMPUTED.search(content))
        for number, (name, more) in enumerate(itertools.product(submission.sources, _PASSES)):
            made = product / f"preprocessed{number}"
            flags = [*submission.flags, *_architecture(engine), *more, f"-isystem={STUB_HEADERS}"]
            command = [str(toolkit.nvcc), "-E", *flags, "-o", str(made), name]
            if run(command, source).exit_code != 0:
                if machine := _preprocessor_problem(command):
                    raise MachineFault(machine)
                yield _unexamined(name, "fails in the preprocessor, which these rules need", refuses)
                continue
            try:
                with quarantine.open_file(product, made.name, _MAX_BYTES) as file:
                    yield from judge_file(file, source, rules, known, computed)
            except quarantine.Refused as refused:
                yield _unexamined(name, f"after preprocessing, {refused}: too much to examine", refuses)


def _preprocessor_problem(command: Sequence[str]) -> str:
    """Why the preprocessor does not even work on an empty file on this machine; '' if it does."""
    with scratch_folder("control") as folder:
        (folder / "empty.cu").write_bytes(b"")
        made = sandbox.runner(_CPU_S, readable=(find_toolkit().root, STUB_HEADERS))(
            [command[0], "-E", "-o", "empty.ii", "empty.cu"], folder
        )
    if made.exit_code == 0:
        return ""
    said = first_line(made.output)[:_MAX_WHAT]
    return f"This machine's preprocessor does not work, not even on an empty file: {said}; see `grader doctor`."


@confined(cpu_s=_CPU_S, memory_bytes=_MEMORY_BYTES, answer_bytes=_ANSWER_BYTES)
def judge_file(
    file: IO[bytes], source: Path, rules: Sequence[SourceRule], known: Sequence[str], computed: Sequence[str]
) -> _Violations:
    """Violations in the preprocessed `file`. `source` is the submission's folder, `known` are the folders of headers
    that are included by name, and `computed` are the files in which a macro names an included file. In the room."""
    with io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="\n") as text:
        lines = list(itertools.islice(own_lines(text, source), _MAX_LINES))
    found = list(judge(lines, rules, known, computed))
    if len(lines) == _MAX_LINES:
        what = f"has more than {_MAX_LINES:,} lines after preprocessing: the rest was not examined"
        refuses = any(rule.action == "refuse" for rule in rules)
        too_long = _found(lines[0].file, 1, what, "no honest program is that long", refuses)
        found.append(too_long.model_copy(update={"unexamined": True}))
    return found[-_MAX_VIOLATIONS:]


def own_lines(preprocessed: Iterable[str], folder: Path) -> Iterator[Line]:
    """The lines that come from files below `folder`, the compiler's working directory. An include directive itself is
    not among them: at the end of the included file, a marker gives the number of the line after the directive."""
    file, number = "", 0
    entered: list[str] = []
    for text in (line.rstrip("\r\n") for line in preprocessed):
        marker = _MARKER.match(text)
        if marker is None:
            if file:
                yield Line(file, number, text)
            number += 1
            continue
        path, flags, left = marker.group(2), marker.group(3).split(), file
        file, number = _relative(path, folder), int(marker.group(1))
        if "1" in flags and left:
            entered.append(path)
        elif "2" in flags and file and entered:
            yield Line(file, number - 1, "", entered=entered.pop())


def _relative(path: str, folder: Path) -> str:
    """The name of one of the student's files, relative to `folder`; '' for any other file."""
    if path.startswith("<"):
        return ""
    whole = Path(path) if path.startswith("/") else folder / path
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) and ".." not in whole.parts else ""


def judge(
    lines: Sequence[Line], rules: Iterable[SourceRule], known: Sequence[str], computed: Sequence[str]
) -> Iterator[Violation]:
    """Violations in preprocessed lines, the first few for each rule. See `judge_file`."""
    text = "\n".join(line.text for line in lines).encode(errors="replace")
    for rule in rules:
        yield from itertools.islice(_broken(rule, lines, text, known, computed), _MAX_FOUND)


def _broken(
    rule: SourceRule, lines: Sequence[Line], text: bytes, known: Sequence[str], computed: Sequence[str]
) -> Iterator[Violation]:
    def called(found: Found, what: str) -> Violation:
        line = lines[found.line - 1]
        return _violation(rule, line.file, line.number, what)

    match rule.forbid:
        case "header":
            for line in lines:
                if line.entered and (name := _matching_header(line.entered, rule.names)):
                    yield _violation(rule, line.file, line.number, f"includes {name}")
        case "absolute_include":  # only includes with a name from a macro; `_spelled` finds the others
            for line in lines:
                path = line.entered if line.file in computed else ""
                if path.startswith("/") and not path.startswith(tuple(known)):
                    yield _violation(rule, line.file, line.number, f"includes {path}")
        case "call":
            yield from (called(found, f"calls {found.name}") for found in calls_in(text, rule.names))
        case "inline_assembly":
            yield from (called(found, "has inline assembly") for found in calls_in(text, _ASSEMBLY))
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
    return chr(int(match[1], 8) & 0xFF) if kind.isdigit() else kind


def _matching_header(path: str, patterns: Sequence[str]) -> str:
    """The end of an included path that matches a pattern, such as "cutlass/gemm.h"; '' if no pattern matches."""
    parts = Path(path).parts
    for count in range(1, min(4, len(parts)) + 1):
        tail = "/".join(parts[-count:])
        if any(fnmatch.fnmatch(tail, pattern) for pattern in patterns):
            return tail
    return ""


def _violation(rule: SourceRule, file: str, line: int, what: str) -> Violation:
    return _found(file, line, what, rule.why, rule.action == "refuse")
