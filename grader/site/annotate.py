"""Source lines with what compilers and sanitizers said about them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from grader.base.names import spelled_out
from grader.records.record import Record

_NVCC = re.compile(r"^(?P<file>[^\s():][^():\n]*)\((?P<line>\d{1,9})\): (?P<what>(?:error|warning|remark)\b.*)$", re.M)
_GCC = re.compile(
    r"^(?P<file>[^\s:][^:\n]*):(?P<line>\d{1,9}):(?:\d+:)? (?P<what>(?:fatal error|error|warning|note): .*)$", re.M
)
PLACE = re.compile(r"(?<![\w./-])(?P<file>[\w./-]+\.(?:cu|cuh|cpp|cc|c|h|hpp)):(?P<line>\d{1,9})")


@dataclass(frozen=True)
class Message:
    """What was said about one line. `kind` is error, warning or note."""

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
    """A file of a submission, with its messages."""

    name: str
    lines: tuple[SourceLine, ...]

    @property
    def messages(self) -> int:
        return sum(len(line.messages) for line in self.lines)


def messages_of(record: Record) -> tuple[Message, ...]:
    """Every message that names a line: the compiler's, and those in tests' reasons and warnings."""
    found = list(_from_compiler(record.build.log))
    for test in record.tests:
        for kind, text in (("error", test.reason), *(("warning", warning) for warning in test.warnings)):
            for place in PLACE.finditer(text):
                found.append(Message(place["file"], int(place["line"]), kind, f"{test.name}: {text}"))
    return tuple(dict.fromkeys(found))


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
    """`files` line by line. A message belongs to the file of its path, else to the only one of its name."""
    names = [name for name, _ in files]
    by_place: dict[tuple[str, int], list[Message]] = {}
    for message in messages:
        said = message.file.removeprefix("./")
        same = [name for name in names if name == said] or [
            name for name in names if PurePosixPath(name).name == PurePosixPath(said).name
        ]
        if len(same) == 1:
            by_place.setdefault((same[0], message.line), []).append(message)
    return tuple(
        SourceFile(
            name,
            tuple(
                SourceLine(number, text, tuple(by_place.get((name, number), ())))
                for number, text in enumerate(
                    spelled_out(content.decode("utf-8", errors="replace")).split("\n"), start=1
                )
            ),
        )
        for name, content in files
    )
