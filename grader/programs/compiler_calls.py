"""Finds the compiler calls among the commands that `make -n` prints, and picks those that make one program.

A Makefile may compile in steps (`nvcc -c`, `g++ -c`, then a link) and may make several programs. We follow the calls
from a link back to the sources, to keep out the files and flags of other programs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cudaemu.nvcc_options import TAKES_VALUE

SOURCES = frozenset({".cu", ".cpp", ".cc", ".cxx", ".c"})
_LAUNCHERS = {"ccache", "sccache", "distcc", "env", "nice", "time"}
"""Programs that run the compiler named in their arguments."""
_COMPILER = re.compile(r"(?:[\w.]+-)*(?:nvcc|ar|g\+\+|gcc|c\+\+|cc|clang\+\+|clang)(?:-\d+)?")
_NO_LINK = {
    "-c", "--compile", "-dc", "--device-c", "-dlink", "--device-link", "-E", "-M", "-MM", "-ptx", "-cubin", "-lib",
}  # fmt: skip
_VALUE_APART = TAKES_VALUE | {"-MQ", "-march"}
"""Options of nvcc and gcc whose next word is not an input file."""
_HOST_ONLY = re.compile(r"-(std=|c$|M|L|Wl,|g|pipe|static|shared|rdynamic|o.|Ofast$)")
"""gcc's options that do not affect the program or that we do not pass to nvcc."""


_MAX_CALLS = 300
_MAX_INPUTS = 300
"""Limit on the inputs of one call. The time to follow calls back grows with calls and inputs, and a hostile Makefile
may print a million of either."""


@dataclass(frozen=True)
class Call:
    """One call of a compiler, linker or ar. `words` are its arguments, spelled as nvcc expects them."""

    words: tuple[str, ...]
    outputs: frozenset[str]
    inputs: tuple[str, ...]
    links: bool
    is_nvcc: bool


def calls(output: str) -> list[Call]:
    """The first compiler calls in the output of `make -n`."""
    found = []
    for line in output.replace("\\\n", " ").splitlines():
        for piece in re.split(r"&&|;|\|\|?", line):
            try:
                words = shlex.split(piece)
            except ValueError:  # an unbalanced quote: an echo, not a compiler call
                continue
            names = [Path(word.lstrip("@-")).name for word in words]
            place = next((i for i, name in enumerate(names) if _COMPILER.fullmatch(name)), None)
            if place is not None and all("=" in word or _begins(word) for word in words[:place]):
                found.append(_call(names[place], words[place + 1 :]))
                if len(found) == _MAX_CALLS:
                    return found
    return found


def program_calls(every: Sequence[Call], wanted: str) -> list[Call]:
    """The calls that make one CUDA program: the first program that has the source `wanted`, or else the first of all.
    If no calls link a CUDA program, all calls of nvcc."""
    programs = [_behind(call, every) for call in every if call.links]
    with_cuda = [calls for calls in programs if any(call.is_nvcc and _sources(call) for call in calls)]
    with_wanted = [calls for calls in with_cuda if any(wanted in call.inputs for call in calls)]
    return next(iter((*with_wanted, *with_cuda)), [call for call in every if call.is_nvcc])


def _begins(word: str) -> bool:
    """Whether `word` can precede the compiler in a command line, as in `@ccache` or `time -p`."""
    return Path(word.lstrip("@-")).name in _LAUNCHERS or re.fullmatch(r"-\w", word) is not None


def _call(compiler: str, words: list[str]) -> Call:
    is_nvcc = compiler.endswith("nvcc")
    if compiler.endswith("ar"):
        names = [word for word in words[1:] if not word.startswith("-")]
        made = {name for path in names[:1] for name in (_plain(path), Path(path).name)}
        return Call((), frozenset(made), tuple(map(_plain, names[1:_MAX_INPUTS])), links=False, is_nvcc=False)
    outputs, inputs = [], []
    rest = iter(words)
    for word in rest:
        if word in ("-o", "--output-file"):
            outputs.append(next(rest, ""))
        elif word in _VALUE_APART:
            next(rest, "")
        elif re.fullmatch(r"-l[\w+]+", word) and word != "-lineinfo":
            inputs.append(f"lib{word[2:]}.a")
        elif not word.startswith("-"):
            inputs.append(word)
    links = not _NO_LINK.intersection(words)
    if not links and not outputs:
        outputs = [f"{Path(name).stem}.o" for name in inputs]
    arguments = words if is_nvcc else list(_in_nvccs_spelling(words))
    targets = frozenset(map(_plain, outputs[:_MAX_INPUTS]))
    return Call(tuple(arguments), targets, tuple(map(_plain, inputs[:_MAX_INPUTS])), links, is_nvcc)


def _in_nvccs_spelling(words: Iterable[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in ("-I", "-isystem", "-D", "-U"):
            yield from (word, next(rest, ""))
        elif word in _VALUE_APART:
            next(rest, "")
        elif not word.startswith("-") or re.match(r"-[IDUl]", word):
            yield word
        elif not _HOST_ONLY.match(word):
            yield f"-Xcompiler={word}"


def _behind(link: Call, every: Sequence[Call]) -> list[Call]:
    """`link` and the calls that make its inputs, directly or not, in the order of `every`."""
    makers = {name: call for call in every for name in call.outputs}
    seen: set[int] = set()
    waiting = [link]
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            waiting += [makers[name] for name in current.inputs if name in makers]
    return [call for call in every if id(call) in seen]


def _sources(call: Call) -> list[str]:
    return [name for name in call.inputs if PurePosixPath(name).suffix in SOURCES]


def _plain(name: str) -> str:
    return PurePosixPath(name).as_posix().removeprefix("./")
