"""Runs nvcc's preprocessor so that its output says, for certain, which file each line comes from.

The output names files in line markers, `# 12 "x.h" 1`, but a submission can write those too: `#line 12 "x.h"` in many
spellings, `# 12 "x.h" 1`, or a raw string with such a line. So the grader does not look for directives. It gives the
preprocessor two random folders, which no submission can name: one holds the submission, the other links to the folders
in which nvcc and its host compiler look for headers, in their order. A line marker with the first is the submission's
own, one with the second is the toolkit's. Any other line that looks like a marker was written by the submission: its
text still counts as the submission's own, and `Line.named` says what it named.
"""

from __future__ import annotations

import posixpath
import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cudaemu.process import Completed, Stopped
from grader import sandbox
from grader.base.errors import MachineFault
from grader.programs.compile_errors import first_line
from grader.programs.stubs import STUB_HEADERS
from grader.programs.submission import Submission
from grader.programs.toolkit import find_toolkit
from grader.sandbox.budget import Budget

_MAX_SAID, _CONTROL_S = 300, 60
_MARKER = re.compile(r'# (\d{1,10}) "((?:[^"\\]|\\.)*)"((?: \d)*)')
_LIKE_A_MARKER = re.compile(r'# \d+ "')
_SEARCHED = re.compile(r"^#include <\.\.\.>.*\n((?: .*\n)+)", re.MULTILINE)
"""What `-v` prints: the folders searched for headers, each on a line after a space."""


@dataclass(frozen=True, slots=True)
class Line:
    """A preprocessed line of the submission's own files. `entered` is the file that it includes, or ''. `named` is the
    file that it gives as the source of the lines after it, or ''."""

    file: str
    number: int
    text: str
    entered: str = ""
    named: str = ""


@dataclass(frozen=True)
class Places:
    """The random folders of one preprocessor run."""

    own: Path
    headers: Path


class Preprocessor:
    """A submission's preprocessor; `folder` is an empty folder for its files, which commands can read. Results go
    to `product`, and nvcc's time comes from `budget`. Raises MachineFault if the preprocessor does not even work on an
    empty file."""

    def __init__(self, submission: Submission, folder: Path, product: Path, budget: Budget) -> None:
        self.places = Places(folder / secrets.token_hex(16), folder / secrets.token_hex(16))
        self._folder, self._product, self._budget = folder, product, budget
        self.places.own.mkdir()
        self.places.headers.mkdir()
        submission.write_to(self.places.own)
        for suffix in {_language(name) for name in submission.sources}:
            (self.places.headers / suffix).mkdir()
            for number, searched in enumerate(_searched(self._on_nothing(suffix).output)):
                (self.places.headers / suffix / f"{number:03}").symlink_to(searched)

    def preprocess(self, source: str, flags: Sequence[str], name: str) -> bool:
        """Preprocess a source of the submission into the file `name`. Returns whether that worked; raises Stopped at a
        limit, and MachineFault if it fails on this machine whatever the source."""
        own, headers = self.places.own, sorted((self.places.headers / _language(source)).iterdir())
        flags = [f"-I{own / flag[2:]}" if flag.startswith("-I") else flag for flag in flags]
        flags += [f"-isystem={each}" for each in headers] + [
            "-Xcompiler=-fno-canonical-system-headers,-fno-working-directory"
        ]
        command = [str(find_toolkit().nvcc), "-E", *flags, "-o", str(self._product / name), str(own / source)]
        done = self._run(self._budget, command, own)
        if done.stopped:
            raise Stopped(done.output.strip().rpartition("\n")[2])
        if done.exit_code == 0:
            return True
        self._on_nothing(_language(source))
        return False

    def _on_nothing(self, suffix: str) -> Completed:
        """Preprocess an empty file, and print which folders are searched."""
        empty = self._folder / f"empty{suffix}"
        empty.write_bytes(b"")
        made = self._product / f"{empty.name}.ii"
        flags = ["-E", f"-isystem={STUB_HEADERS}", "-Xcompiler=-v", "-o", str(made), str(empty)]
        done = self._run(_CONTROL_S, [str(find_toolkit().nvcc), *flags], self._product)
        if done.exit_code != 0 or not _searched(done.output):
            said = first_line(done.output)[:_MAX_SAID]
            problem = "This machine's preprocessor does not work, not even on an empty file"
            raise MachineFault(f"{problem}: {said}; see `grader doctor`.")
        return done

    def _run(self, limit: float | Budget, command: Sequence[str], folder: Path) -> Completed:
        readable = (find_toolkit().root, STUB_HEADERS, self._folder)
        return sandbox.runner(limit, readable=readable, writable=(self._product,))(command, folder)


def _language(source: str) -> str:
    """.c or .cu: C is searched for in other folders than C++."""
    return ".c" if source.endswith(".c") else ".cu"


def _searched(said: str) -> list[Path]:
    found = _SEARCHED.search(said)
    return [Path(line[1:]) for line in found[1].splitlines()] if found else []


def own_lines(preprocessed: Iterable[str], places: Places) -> Iterator[Line]:
    """The submission's own lines. Lines of files that it includes by an absolute path count as the including file's."""
    own, headers = f"{places.own}/", f"{places.headers}/"
    file, number, is_own, own_markers = "", 1, True, 0
    named: set[str] = set()
    for text in (line.rstrip("\r\n") for line in preprocessed):
        marker = _MARKER.fullmatch(text)
        path, flags = (_unquoted(marker[2]), marker[3].split()) if marker else ("", [])
        begun = own_markers > 1  # the first is followed by what the compiler includes by itself
        entered = begun and is_own and "1" in flags
        if marker and path.startswith(headers):
            if entered:
                yield Line(file, number, "", entered=path.removeprefix(headers).split("/", 2)[2])
            is_own = False
        elif marker and (name := _below(path, own)):
            if entered:
                yield Line(file, number, "", entered=name)
            file, number, is_own, own_markers = name, int(marker[1]), True, own_markers + 1
        elif marker and path.startswith("<") and not begun:
            is_own = True  # <built-in> and <command-line>
        elif is_own or marker:  # a header returns into lines that a directive has renamed
            is_own = True
            if _LIKE_A_MARKER.match(text) and path not in named:
                named.add(path)
                yield Line(file, number, "", entered=path if "1" in flags else "", named=path or text)
            yield Line(file, number, text)
            number += 1


def _below(path: str, own: str) -> str:
    """The name of one of the submission's files; '' for another one."""
    name = posixpath.normpath(path.removeprefix(own)) if path.startswith(own) else ".."
    return "" if name.startswith("..") else name


def _unquoted(path: str) -> str:
    """The path that the preprocessor wrote into a marker; some versions write bytes beyond ASCII as numbers."""
    plain = re.sub(rb"\\([0-7]{3}|.)", lambda found: _character(found[1]), path.encode(errors="replace"))
    return plain.decode(errors="replace")


def _character(escaped: bytes) -> bytes:
    return bytes([int(escaped, 8) & 0xFF]) if len(escaped) == 3 else escaped
