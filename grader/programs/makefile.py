"""Reads compiler flags from a student's Makefile or CMakeLists.txt and keeps those that a student may choose.

`make -n` prints the commands that the Makefile would run. Nothing runs except what make itself evaluates, in the
sandbox. From the compiler commands we keep the flags that change the program (macros, optimisation, language, include
folders inside the submission). We drop flags that the grader sets (architecture, output, mode), and, with a note,
flags that could do harm.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import Field

from cudaemu.nvcc_options import SET_BY_THE_GRADER, TAKES_VALUE
from cudaemu.process import Runner
from grader.base.names import printable_name
from grader.base.sizes import Name, Sentence
from grader.programs.cmakelists import read_cmakelists
from grader.programs.compiler_calls import SOURCES, calls, program_calls
from grader.sandbox.room import Unreadable, confined

_KEPT = re.compile(
    r"(-D|-U|--define-macro=|--undefine-macro=)[A-Za-z_][^,]*(,[A-Za-z_][^,]*)*|-O[0-3]?|--optimize=\d|-{1,2}std=[\w+]+"
    r"|-{1,2}use_fast_math|-{1,2}(ftz|prec-div|prec-sqrt|fmad)=(true|false)|-{1,2}maxrregcount=\d+"
    r"|-{1,2}(extended-lambda|expt-extended-lambda|expt-relaxed-constexpr|restrict|extra-device-vectorization)"
    r"|-{1,2}default-stream=[\w-]+|-(rdc|-relocatable-device-code)=(true|false)|-w|-g|-lineinfo|--generate-line-info"
    r"|-{1,2}(diag-suppress|diag_suppress)=[\d,]+|-W[\w-]*|-{1,2}resource-usage"
)
"""nvcc splits macros at commas and gives each part to gcc as a separate word. gcc reads options from a file if a word
is @FILE, so each part must begin like a name."""
_PTXAS_KEPT = re.compile(r"-v|--verbose|-O[0-3]|-dlcm=\w+|--def-load-cache=\w+|-warn-[\w-]+|--warn-[\w-]+")
_COMPILER_KEPT = re.compile(
    r"-O([0-3]|fast|s|g)?|-f(fast-math|unroll-loops|no-[\w-]+|openmp|tree-vectorize|PIC)|-W[\w=-]*|-w|-g|-[DU]\w+(=[\w.+-]*)?"
    r"|-march=native|-mtune=native|-m(avx2|avx|fma|avx512f|sse4\.2)|-std=[\w+]+|-pthread|-pedantic"
)
_HARMLESS = re.compile(r'(?:[^"$`\\]|\\"|"[\w.]*")*')
"""Flags without characters that a shell interprets. nvcc starts its tools through a shell, with -D and -I in double
quotes and the words of -Xcompiler without quotes. A macro whose value is a string is -DNAME=\\"text\\" in nvcc's
arguments."""
_RELOCATABLE = {"-dc", "--device-c"}
CPP_IS_CUDA = "-x=cu"
"""The flag of a submission whose C++ files are compiled as CUDA."""
_STANDARD = re.compile(r"-{1,2}std=")
_MAX_CHARACTERS = 4096
_MAX_FLAGS = 256
_MAX_SOURCES = 1000
_MAX_NOTES = 20
_Word = Annotated[str, Field(max_length=2 * _MAX_CHARACTERS)]
_SHOWN = 100
_SYSTEM_LIBRARIES = {"m", "pthread", "rt", "dl", "stdc++", "c", "gomp", "cudart", "cudart_static", "cudadevrt", "cuda"}


@dataclass(frozen=True)
class MakefileFlags:
    """The flags of a Makefile that the grader accepts, the sources that the Makefile names, and notes on what was left
    out."""

    flags: Annotated[tuple[_Word, ...], Field(max_length=_MAX_FLAGS)]
    sources: Annotated[tuple[_Word, ...], Field(max_length=_MAX_SOURCES)]
    notes: Annotated[tuple[Sentence, ...], Field(max_length=_MAX_NOTES)]
    origin: Name = "Makefile"

    @property
    def include_folders(self) -> tuple[str, ...]:
        """The folders given by -I, relative to the submission's folder."""
        return tuple(flag.removeprefix("-I") for flag in self.flags if flag.startswith("-I"))


def read_makefile_flags(folder: Path, target: str, run: Runner) -> MakefileFlags | None:
    """The flags of the compiler commands that `make target`, or else plain `make`, would run in `folder` for one
    program. None if make runs no nvcc there."""
    for goal in ([target], []):
        said = run(["make", "-n", "-B", "--no-print-directory", *goal], folder)
        if said.exit_code != 0:
            continue
        try:
            found = _of_make(said.output, f"{target}.cu", (folder, folder.resolve()))
        except Unreadable as unreadable:
            return MakefileFlags((), (), (f"the Makefile is not used: to read what it runs {unreadable}",))
        if found is not None:
            return found
    return None


@confined()
def _of_make(printed: str, wanted: str, folders: tuple[Path, Path]) -> MakefileFlags | None:
    chosen = program_calls(calls(printed), wanted)
    return sort_flags((call.words for call in chosen), folders) if any(call.is_nvcc for call in chosen) else None


def read_cmake_flags(text: str, main: str, folder: Path) -> MakefileFlags | None:
    """Like `read_makefile_flags`, for a CMakeLists.txt in `folder`; None if it builds no CUDA program."""
    try:
        return _of_cmake(text, main, (folder, folder.resolve()))
    except Unreadable as unreadable:
        notes = (f"the CMakeLists.txt is not used: to read it {unreadable}",)
        return MakefileFlags((), (), notes, origin="CMakeLists.txt")


@confined()
def _of_cmake(text: str, main: str, folders: tuple[Path, Path]) -> MakefileFlags | None:
    words = read_cmakelists(text, main)
    return replace(sort_flags([words], folders), origin="CMakeLists.txt") if words else None


def sort_flags(commands: Iterable[Sequence[str]], folders: tuple[Path, Path]) -> MakefileFlags:
    """Sort nvcc's arguments into flags to keep, sources, and notes on dropped flags. All sources are compiled with all
    flags, except that nvcc accepts only one -std: the first."""
    kept: dict[str, None] = {}
    sources: dict[str, None] = {}
    notes: dict[str, None] = {}
    for command in commands:
        flags = _joined(command)
        own = [flag for flag in flags if not flag.startswith("-") and Path(flag).suffix in SOURCES]
        sources |= dict.fromkeys(own)
        if _RELOCATABLE.intersection(flags):
            kept["-rdc=true"] = None
        if {CPP_IS_CUDA, f"-{CPP_IS_CUDA}"}.intersection(flags) and any(Path(name).suffix != ".cu" for name in own):
            kept[CPP_IS_CUDA] = None
        for flag in flags:
            for keep, note in _judged(flag, folders) if flag.startswith("-") else ():
                if keep and not (_STANDARD.match(keep) and any(map(_STANDARD.match, kept))):
                    kept[keep] = None
                if note:
                    notes[note] = None
    if len(kept) > _MAX_FLAGS:
        notes[f"flags after the first {_MAX_FLAGS} are left out"] = None
    named = tuple(name for name in sources if len(name) <= _MAX_CHARACTERS)
    return MakefileFlags(tuple(kept)[:_MAX_FLAGS], named[:_MAX_SOURCES], tuple(notes)[:_MAX_NOTES])


def _joined(words: Iterable[str]) -> list[str]:
    """Join values that are separate words (`-D X`, `-Xptxas -v`) to their flags."""
    joined: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in TAKES_VALUE:
            value = next(rest, "")
            attached = word in {"-D", "-U", "-I", "-L", "-l"}
            joined.append(word + value if attached else f"{word}={value}")
        else:
            joined.append(word)
    return joined


def _judged(flag: str, folders: tuple[Path, Path]) -> list[tuple[str | None, str | None]]:
    """(flag to keep, note) for one flag, or for each item of a list such as -Xcompiler=a,b."""
    if not _HARMLESS.fullmatch(flag) or not flag.isprintable() or len(flag) > _MAX_CHARACTERS:
        return [(None, f"{_shortened(flag)} is left out: it is too long, or has characters that a shell interprets")]
    name, _, value = flag.partition("=")
    if name in {"-Xptxas", "--ptxas-options"}:
        return [_pass_through("-Xptxas", item, _PTXAS_KEPT) for item in value.split(",") if item]
    if name in {"-Xcompiler", "--compiler-options"}:
        return [_pass_through("-Xcompiler", item, _COMPILER_KEPT) for item in re.split(r"[, ]", value) if item]
    if flag.startswith(("-I", "--include-path=", "-isystem=", "--system-include=")):
        return [_include(flag.removeprefix("-I") if flag.startswith("-I") else value, folders)]
    if flag != "-lineinfo" and re.match(r"-l\w|--library=", flag):
        library = flag[2:] if flag.startswith("-l") and not flag.startswith("--") else value
        return [(None, None if library in _SYSTEM_LIBRARIES else f"-l{library} is left out: libraries are not linked")]
    unused = ("-L", "--library-path=", "-Xlinker", "--linker-options", "-Xcudafe", "-Xnvlink", "-Xarchive")
    if flag.startswith(unused) or name in SET_BY_THE_GRADER:
        return [(None, None)]
    if flag in {"-G", "--device-debug"}:
        return [(None, f"{flag} is left out: kernels are built with optimization")]
    if _KEPT.fullmatch(flag):
        return [(flag, None)]
    return [(None, f"{_shortened(flag)} is left out: it is not one of the flags that the grader accepts")]


def _shortened(flag: str) -> str:
    """A flag, shortened and made safe to print."""
    return printable_name(flag[:_SHOWN]) + ("…" if len(flag) > _SHOWN else "")


def _pass_through(option: str, item: str, allowed: re.Pattern[str]) -> tuple[str | None, str | None]:
    if allowed.fullmatch(item):
        return f"{option}={item}", None
    return None, f"{option} {_shortened(item)} is left out: it is not one of the flags that the grader accepts"


def _include(value: str, folders: tuple[Path, Path]) -> tuple[str | None, str | None]:
    """(flag to keep, note) for one -I. The path is checked as written, without following links: make may have put links
    into the submission's folder, and their targets may change later. `folders` are two spellings of that folder."""
    whole = Path(os.path.normpath(folders[0] / value))
    if "," in value:  # nvcc would read several folders
        return None, f"-I{_shortened(value)} is left out: write one -I for each folder"
    for own in folders:
        if whole.is_relative_to(own):
            below = str(whole.relative_to(own))
            if below.startswith("@"):  # gcc would pass it on as a separate word and read options from that file
                return None, f"-I{_shortened(value)} is left out: a folder's name may not begin with @"
            return f"-I{below}", None
    return None, f"-I{_shortened(value)} is left out: it is outside the submission"
