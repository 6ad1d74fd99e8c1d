"""What an assignment forbids in a submission's source, and where it was found.

Headers, calls and assembly are looked for in what nvcc's preprocessor makes of each source, so a macro hides nothing
and a comment accuses nobody; its line markers lead back to the student's own lines. Only their files are searched: what
the toolkit's headers do is not theirs. How an include was spelled is not in the preprocessor's output; that is read
from the files themselves.

A rule speaks of the text, not of what the program does: the sandbox keeps programs from doing harm whatever they call.
"""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from grader import sandbox
from grader.assignment import Assignment, SourceRule
from grader.paths import cache_folder
from grader.scratch import claim_name, scratch_folder
from grader.stubs import STUB_HEADERS
from grader.submission import Submission
from grader.toolkit import find_toolkit

_MOST_TEXT = 128 << 20
_MOST_LINES = 500_000
"""Of the student's own: each takes some 300 bytes of memory, and an include can be repeated."""
_MARKER = re.compile(r'^# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)')
_TEXT = (
    r'(?<!\w)(?:u8|[uUL])?R"(?P<end>[^()\\\s]{0,16})\((?s:.*?)(?:\)(?P=end)"|\Z)'
    r'|"(?:[^"\\\n]|\\.)*"?'
    r"|(?<!\w)(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*'?"
)
_LITERAL = re.compile(_TEXT)
"""Strings, raw ones too, and characters: '"' begins no string, and 1'000 no character. What is not closed ends with its
line: looking for the end anew from every sign in it would take hours."""
_ADJACENT = re.compile(r'"\s*"')
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3})")
_ASSEMBLY = re.compile(r"\b(?:asm|__asm__|__asm)\b\s*(?:(?:volatile|__volatile__|goto|inline)\b\s*)*\(")
_ABSOLUTE = re.compile(r'^[ \t]*(?:#|%:)[ \t]*(?:include|import|embed)[ \t]*["<](/[^">\n]*)')
_EMBED = re.compile(r'^[ \t]*(?:#|%:)[ \t]*embed[ \t]*["<]([^">\n]*)')
_COMMENT = re.compile(rf"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|{_TEXT}")
_SPLICE = rb"(?:\\|\?\?/)\r?\n"
_LINE_DIRECTIVE = re.compile(
    rb"(?m)^((?:[^\n]*\*/)?[ \t\f\v]*(?:#|%:|\?\?=)(?:[ \t\f\v]|" + _SPLICE + rb"|/\*(?:[^*]|\*(?!/))*\*/)*)(?=\d|"
    + (rb"(?:" + _SPLICE + rb")*").join((b"l", b"i", b"n", b"e")) + rb"\b)"
)  # fmt: skip
"""`#line 1 "x.h"` and `# 1 "x.h"`: with them a file could say that its lines are another's."""
_PASSES = ((), ("-U__CUDA_ARCH__",))
"""nvcc -E shows what the device's compiler sees; without that macro, what the host's does."""


@dataclass(frozen=True)
class Violation:
    """A line that breaks a rule. `refused`: the submission is not graded for it."""

    file: str
    line: int
    what: str
    why: str
    refused: bool

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.what}, which this assignment forbids: {self.why}."


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the student's own, preprocessed. `entered` is the header that it includes, '' for none."""

    file: str
    number: int
    text: str
    entered: str = ""


def violations(submission: Submission, assignment: Assignment) -> tuple[Violation, ...]:
    """What in `submission` breaks the assignment's source rules, in the order of files and lines. A source that cannot
    be preprocessed is left to the compiler to complain of. Kept in the cache like a build."""
    if not assignment.source_rules:
        return ()
    rules = json.dumps([rule.model_dump() for rule in assignment.source_rules])
    looked_by = Path(__file__).read_text(encoding="utf-8")
    parts = (
        submission.sha256,
        *submission.sources,
        "flags",
        *submission.flags,
        rules,
        find_toolkit().version,
        looked_by,
    )
    kept = cache_folder() / "rules" / f"{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:32]}.json"
    try:
        return tuple(Violation(**each) for each in json.loads(kept.read_text()))
    except (OSError, ValueError, TypeError):
        pass
    found = tuple(_look(submission, assignment))
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_name(f"{claim_name(kept.parent)}{kept.name}")
    unfinished.write_text(json.dumps([asdict(each) for each in found]))
    unfinished.replace(kept)
    return found


def _look(submission: Submission, assignment: Assignment) -> Iterator[Violation]:
    seen: set[tuple[str, int, str]] = set()
    for violation in (*_spelled(submission, assignment.source_rules), *_preprocessed(submission, assignment)):
        place = (violation.file, violation.line, violation.what)
        if place not in seen:
            seen.add(place)
            yield violation


def _spelled(submission: Submission, rules: Sequence[SourceRule]) -> Iterator[Violation]:
    """What only the files as handed in show: how includes are spelled, and #embed."""
    for rule in rules:
        pattern = {"absolute_include": _ABSOLUTE, "incbin": _EMBED}.get(rule.forbid)
        if pattern is None:
            continue
        for name, content in submission.files:
            text = _COMMENT.sub(_blank_comment, content.decode(errors="replace").replace("\\\n", " "))
            for number, line in enumerate(text.splitlines(), 1):
                if match := pattern.match(line):
                    directive = "embeds" if rule.forbid == "incbin" else "includes"
                    yield _violation(rule, name, number, f"{directive} {match.group(1)}")


def _blank_comment(match: re.Match[str]) -> str:
    """A comment without its text but with its lines; a string or character as it is."""
    text = match.group(0)
    return "\n" * text.count("\n") if text.startswith("/") else text


def _preprocessed(submission: Submission, assignment: Assignment) -> Iterator[Violation]:
    toolkit = find_toolkit()
    with scratch_folder("rules") as folder:
        source, product = folder / "source", folder / "product"
        source.mkdir()
        product.mkdir()
        submission.write_to(source)
        for name, content in submission.files:
            (source / name).write_bytes(_LINE_DIRECTIVE.sub(rb"\1pragma ", content))
        run = sandbox.runner(assignment.build.limit_s, readable=(toolkit.root, STUB_HEADERS), writable=(product,))
        for name, more in itertools.product(submission.sources, _PASSES):
            made = product / "preprocessed"
            made.unlink(missing_ok=True)
            flags = [*submission.flags, *more, f"-isystem={STUB_HEADERS}"]
            command = [str(toolkit.nvcc), "-E", *flags, "-o", str(made), name]
            if run(command, source).exit_code == 0 and made.stat().st_size <= _MOST_TEXT:
                with made.open(encoding="utf-8", errors="replace") as preprocessed:
                    lines = list(itertools.islice(own_lines(preprocessed, source), _MOST_LINES))
                yield from judge(lines, assignment.source_rules)
                if len(lines) == _MOST_LINES:
                    what = f"comes to more than {_MOST_LINES:,} lines when preprocessed: the rest was not looked at"
                    yield Violation(name, 1, what, "nobody writes as much", refused=False)


def own_lines(preprocessed: Iterable[str], folder: Path) -> Iterator[Line]:
    """The lines that come from files below `folder`, the compiler's working directory. An include is known when the
    marker leads back from it: to the line after it."""
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
    """The name of a file of the student's; '' for any other."""
    if path.startswith("<"):
        return ""
    whole = Path(path) if path.startswith("/") else folder / path
    return whole.relative_to(folder).as_posix() if whole.is_relative_to(folder) and ".." not in whole.parts else ""


def judge(lines: Sequence[Line], rules: Iterable[SourceRule]) -> Iterator[Violation]:
    """What breaks the rules in preprocessed lines."""
    code = _LITERAL.sub(_blank_literal, "\n".join(line.text for line in lines))
    for rule in rules:
        match rule.forbid:
            case "header":
                for line in lines:
                    if line.entered and (name := _matching_header(line.entered, rule.names)):
                        yield _violation(rule, line.file, line.number, f"includes {name}")
            case "call":
                words = "|".join(re.escape(name).replace(r"\*", r"\w*") for name in rule.names)
                pattern = re.compile(rf"(?<![\w.])(?<!->)({words})\s*\)?\s*\(")
                for found in pattern.finditer(code):
                    line = lines[code.count("\n", 0, found.start())]
                    yield _violation(rule, line.file, line.number, f"calls {found.group(1)}")
            case "inline_assembly":
                for found in _ASSEMBLY.finditer(code):
                    line = lines[code.count("\n", 0, found.start())]
                    yield _violation(rule, line.file, line.number, "has inline assembly")
            case "incbin":
                yield from _incbin(rule, lines)


def _blank_literal(match: re.Match[str]) -> str:
    """A string or character without its text but with its lines."""
    return '""' + "\n" * match.group(0).count("\n")


def _incbin(rule: SourceRule, lines: Sequence[Line]) -> Iterator[Violation]:
    """`.incbin` in a string, however the string is put together."""
    for first in range(len(lines)):
        if '"' not in lines[first].text:
            continue
        joined = _ADJACENT.sub("", " ".join(line.text for line in lines[first : first + 8]))
        at = _ESCAPE.sub(_unescaped, joined).lower().find(".incbin")
        if 0 <= at < len(lines[first].text) + 1:
            yield _violation(rule, lines[first].file, lines[first].number, "has .incbin in a string")


def _unescaped(match: re.Match[str]) -> str:
    digits = match.group(1)
    return chr(int(digits[1:], 16) if digits.startswith("x") else int(digits, 8) & 0xFF)


def _matching_header(path: str, patterns: Sequence[str]) -> str:
    """The end of an included path that a pattern names ("cutlass/gemm.h"), or ''."""
    parts = Path(path).parts
    for count in range(1, min(4, len(parts)) + 1):
        tail = "/".join(parts[-count:])
        if any(fnmatch.fnmatch(tail, pattern) for pattern in patterns):
            return tail
    return ""


def _violation(rule: SourceRule, file: str, line: int, what: str) -> Violation:
    return Violation(file, line, what, rule.why, rule.action == "refuse")
