"""Attaches the messages of compilers and sanitizers to the source lines that they name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from markupsafe import Markup, escape

from grader.base.names import spelled_out
from grader.findings import claimed
from grader.records.record import Record, TestRecord
from grader.report.failures import Cause, alike, causes, names_of

_NVCC = re.compile(r"^(?P<file>[^\s():][^():\n]*)\((?P<line>\d{1,9})\): (?P<what>(?:error|warning|remark)\b.*)$", re.M)
_GCC = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9}):(?:\d+:)? (?P<what>(?:fatal error|error|warning|note): .*)$", re.M
)
PLACE = re.compile(r"(?<![\w./-])(?P<file>[\w./-]+\.(?:cu|cuh|cpp|cc|c|h|hpp)):(?P<line>\d{1,9})")

_AROUND = 4
"""The number of lines shown before and after a line with a message."""

_CODE = re.compile(r"`([^`]+)`")
_JOINT = re.compile(r"(?<=\w)([._@-])(?=\w)")


@dataclass(frozen=True)
class Message:
    """A message about one line. `kind` is error, warning or note."""

    file: str
    line: int
    kind: str
    text: str


@dataclass(frozen=True)
class SourceLine:
    """One line of a file; `number` counts from 1."""

    number: int
    text: str
    messages: tuple[Message, ...]


@dataclass(frozen=True)
class SourceFile:
    """A file of a submission, with its messages. The anchors of its lines on a page begin with `id`."""

    id: str
    name: str
    lines: tuple[SourceLine, ...]

    @property
    def messages(self) -> int:
        return sum(len(line.messages) for line in self.lines)

    @property
    def pieces(self) -> list[tuple[bool, tuple[SourceLine, ...]]]:
        """The lines in order, split into pieces that are near a message (True) and pieces that are not (False)."""
        near = {line.number + by for line in self.lines if line.messages for by in range(-_AROUND, _AROUND + 1)}
        return [(shown, tuple(lines)) for shown, lines in groupby(self.lines, lambda line: line.number in near)]


def messages_of(record: Record) -> tuple[Message, ...]:
    """Every message that names a line, each once: the compiler's messages, reasons of failed tests, and warnings."""
    found = list(_from_compiler(record.build.log))
    if record.build.ok:
        for cause in causes(record.tests):
            found += _of_cause(cause)
    for tests, text in warnings_of(record.tests):
        found += _at_places("warning", tests, text)
    return tuple(dict.fromkeys(found))


def warnings_of(tests: Sequence[TestRecord]) -> list[tuple[str, str]]:
    """Every kind of warning once, preceded by the names of its tests."""
    seen: dict[str, tuple[str, list[str]]] = {}
    for test in tests:
        for warning in test.warnings:
            seen.setdefault(alike(warning), (warning, []))[1].append(test.name)
    return [(names_of(names), text) for text, names in seen.values()]


def _of_cause(cause: Cause) -> Iterator[Message]:
    """A message at the place of the likeliest finding, and references to it at its other places."""
    best = claimed([test.findings for test in cause.tests])
    if best is None or best.place is None:
        yield from _at_places("error", cause.names, cause.sentence)
        return
    yield Message(best.place.file, best.place.line, "error", f"{cause.names}: {cause.sentence}")
    for place in {best.other, best.allocated} - {None, best.place}:
        if place is not None:
            yield Message(place.file, place.line, "note", f"{cause.names}: see {best.place}")


def _at_places(kind: str, tests: str, text: str) -> Iterator[Message]:
    """A message for the first line that the text names, and for its other lines a reference to the first."""
    first, *others = (*PLACE.finditer(text), None)
    if first:
        yield Message(first["file"], int(first["line"]), kind, f"{tests}: {text}")
    for place in others:
        if place and first and place[0] != first[0]:
            yield Message(place["file"], int(place["line"]), "note", f"{tests}: see {first[0]}")


def linked(text: str, files: Sequence[SourceFile]) -> Markup:
    """`text` with a link at every place (file and line) that is in `files`, and code between backticks as code."""
    parts, end = [], 0
    for place in PLACE.finditer(text):
        name = _name_in([file.name for file in files], place["file"])
        for file in files:
            if file.name == name:
                link = Markup('<a href="#{}-{}">{}</a>').format(file.id, place["line"], place[0])
                parts += [escape(text[end : place.start()]), link]
                end = place.end()
    return code(Markup("").join([*parts, escape(text[end:])]))


def breakable(name: str) -> Markup:
    """A name that may be broken after its dots, dashes and the like, before it is broken anywhere."""
    return Markup(_JOINT.sub(r"\1<wbr>", str(escape(name))))


def code(text: str) -> Markup:
    """`text` with code between backticks as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))


def _from_compiler(log: str) -> Iterator[Message]:
    for pattern in (_NVCC, _GCC):
        for match in pattern.finditer(log):
            what = match["what"]
            kind = (
                "error"
                if "error" in what.split(":")[0]
                else "note"
                if what.startswith(("note", "remark"))
                else "warning"
            )
            yield Message(match["file"].strip(), int(match["line"]), kind, what)


def annotated(files: Sequence[tuple[str, bytes]], messages: Sequence[Message]) -> tuple[SourceFile, ...]:
    """`files` line by line, with each message at its line."""
    names = [name for name, _ in files]
    by_place: dict[tuple[str, int], list[Message]] = {}
    for message in messages:
        if name := _name_in(names, message.file):
            by_place.setdefault((name, message.line), []).append(message)
    return tuple(
        SourceFile(
            f"file{place}",
            name,
            tuple(
                SourceLine(number, text, tuple(by_place.get((name, number), ())))
                for number, text in enumerate(
                    spelled_out(content.decode("utf-8", errors="replace")).split("\n"), start=1
                )
            ),
        )
        for place, (name, content) in enumerate(files, start=1)
    )


def _name_in(names: Sequence[str], said: str) -> str:
    """The file that the path `said` means: the file with this path, else the only file with this name, else ''."""
    path = said.removeprefix("./")
    same = [name for name in names if name == path]
    same = same or [name for name in names if PurePosixPath(name).name == PurePosixPath(path).name]
    return same[0] if len(same) == 1 else ""
