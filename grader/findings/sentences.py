"""Turns a finding into words, for people: where, what, and what to do.

A catalogue has a fact and an advice for each kind. `{name}` in them is a number or a word of the finding, one of its
fields, or a term of CUDA that Triton has another word for. A part in `[brackets]` is left out if one of its names has
no value.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import cache

from grader.findings.catalogue import Catalogue
from grader.findings.chinese import CHINESE
from grader.findings.english import ENGLISH
from grader.findings.finding import Finding, Number, Place
from grader.findings.kinds import kind_of

SourceLine = Callable[[str, int], str]
"""Returns the text of a line of the submission, '' if there is none. Arguments: the file's submitted name, the line's
number."""
MAX_QUOTED = 80
_LONG = 1_000_000
"""Whole numbers from here on are written with commas."""
_COMMENT = re.compile(r"//.*")


LANGUAGES: Mapping[str, Catalogue] = {"en": ENGLISH, "zh-TW": CHINESE}
_CUDA = {
    "BARRIER": "__syncthreads()",
    "WARP_BARRIER": "__syncwarp()",
    "BLOCK": "block",
    "ATOMIC": "atomicAdd",
    "ALLOCATION": "cudaMalloc",
}
_TRITON = {
    "BARRIER": "tl.debug_barrier()",
    "WARP_BARRIER": "tl.debug_barrier()",
    "BLOCK": "program",
    "ATOMIC": "tl.atomic_add",
    "ALLOCATION": "empty",
}
"""The terms of a program's language, by the names that catalogues use for them."""


def select_language(name: str) -> None:
    """Use this language's catalogue from now on, in this process and those that it starts."""
    os.environ["GRADER_LANG"] = name


def _catalogue() -> Catalogue:
    return LANGUAGES.get(os.environ.get("GRADER_LANG", ""), ENGLISH)


def no_source(file: str, line: int) -> str:
    """A `SourceLine` for when no source is available."""
    return ""


def sentence(finding: Finding, line_of: SourceLine = no_source) -> str:
    """Describe a finding for a student: its place, what happened there, what to do."""
    language = _catalogue()
    said, todo = fact(finding), advice(finding)
    where = _where(finding, language) if kind_of(finding).leads else ""
    joined = language.phrases["continues"] if _continues(finding, language) else language.phrases["then"]
    parts = [f"{where}{joined if where else ''}{said}{language.phrases['stop']}", todo]
    if not kind_of(finding).leads and (look := quoted(finding, line_of)):
        parts.append(language.phrases["look"].format(quoted=look))
    return language.phrases["space"].join(filter(None, parts))


def fact(finding: Finding) -> str:
    """What a finding says, without its place and without a full stop."""
    return _filled(_entry(finding, _catalogue())[0], finding, _catalogue())


def advice(finding: Finding) -> str:
    return _filled(_entry(finding, _catalogue())[1], finding, _catalogue())


def quoted(finding: Finding, line_of: SourceLine) -> str:
    """ "kernel.cu:61: `acc[x] += p * v[key * d + x];`", or its place alone without the source; '' without a place."""
    if finding.place is None:
        return ""
    text = line_of(finding.place.file, finding.place.line)
    text = " ".join((text if finding.place.file.endswith(".py") else _COMMENT.sub("", text)).split())
    text = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"
    return f"{finding.place}: `{text}`" if text else str(finding.place)


def _entry(finding: Finding, language: Catalogue) -> tuple[str, str]:
    return language.sentences.get(finding.kind) or ENGLISH.sentences.get(finding.kind) or (finding.kind, "")


def _continues(finding: Finding, language: Catalogue) -> bool:
    """Whether the fact continues the sentence that begins with the thread's place: "thread (0,0,0) … wrote 4 bytes"."""
    return finding.kernel is not None and _entry(finding, language)[0].startswith("{did}")


def _where(finding: Finding, language: Catalogue) -> str:
    """ "main.cu:60: kernel attention, thread (3,0,0) of block (0,0,0)", without the parts that are unknown."""
    names = {"place": str(finding.place or ""), "kernel": finding.kernel or ""}
    names |= {"thread": dim_text(finding.thread), "block": dim_text(finding.block)}
    return _render(language.phrases["where"], names | _terms(finding))


def dim_text(dim: tuple[int, int, int] | None) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})" if dim is not None else ""


def _filled(template: str, finding: Finding, language: Catalogue) -> str:
    names = {name: _number(value, language) for name, value in finding.values.items()}
    names |= {name: language.words.get(name, {}).get(word, word) for name, word in finding.words.items()}
    names |= {"file": finding.file or "", "line": str(finding.line or ""), "array": finding.array or ""}
    names |= {"allocated": str(finding.allocated or ""), "other": _place(finding.other, finding.file)}
    names |= {"place": str(finding.place or ""), "other_line": str(finding.other.line if finding.other else "")}
    names |= _terms(finding)
    names["memory"] = _render(language.phrases["memory"], names) if finding.array or finding.allocated else ""
    return _render(template, names)


def _place(place: Place | None, file: str | None) -> str:
    return str(place) if place is not None else ""


def _terms(finding: Finding) -> dict[str, str]:
    return _TRITON if (finding.file or "").endswith(".py") else _CUDA


def _number(value: Number | tuple[Number, ...], language: Catalogue) -> str:
    if isinstance(value, tuple):
        *first, last = (_number(each, language) for each in value)
        return language.phrases["and"].join((language.phrases["comma"].join(first), last)) if first else last
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= _LONG else str(value)
    return f"{value:.4g}"


def _render(template: str, names: Mapping[str, str]) -> str:
    said = []
    for piece, optional in _pieces(template):
        if not optional or all(names.get(name) for name in _names(piece)):
            said.append(re.sub(r"\{(\w+)\}", lambda found: names.get(found[1], "") or "?", piece))
    return "".join(said)


@cache
def _pieces(template: str) -> tuple[tuple[str, bool], ...]:
    """The parts of a template, and whether each is optional. Brackets are not nested."""
    parts = re.split(r"[\[\]]", template)
    return tuple((part, place % 2 == 1) for place, part in enumerate(parts) if part)


@cache
def _names(template: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\{(\w+)\}", template))
