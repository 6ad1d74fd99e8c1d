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
from grader.findings.finding import Finding, Number
from grader.findings.kinds import kind_of

SourceLine = Callable[[str, int], str]
"""Returns the text of a line of the submission, '' if there is none. Arguments: the file's submitted name, the line's
number."""
MAX_QUOTED = 80
_LONG = 1_000_000
"""Whole numbers from here on are written with commas."""
_COMMENT = re.compile(r"//.*")


LANGUAGES = {"en": ENGLISH, "zh-TW": CHINESE}
_CUDA = {
    "BARRIER": "__syncthreads()",
    "WARP_BARRIER": "__syncwarp()",
    "BLOCK": "block",
    "ATOMIC": "atomicAdd",
}
_TRITON = {
    "BARRIER": "tl.debug_barrier()",
    "WARP_BARRIER": "tl.debug_barrier()",
    "BLOCK": "program",
    "ATOMIC": "tl.atomic_add",
    "by": "the array made",
    "function": "",
}
"""The terms of a program's language, by the names that catalogues use for them. In Triton no call of CUDA is named."""


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
    where = _where(finding, language) if _begins_with_place(finding) else ""
    joined = language.phrases["continues"] if _continues(finding) else language.phrases["then"]
    parts = [f"{where}{joined if where else ''}{said}{language.phrases['stop']}", todo]
    if not kind_of(finding).leads and (look := quoted(finding, line_of)):
        parts.append(language.phrases["look"].format(quoted=look))
    return language.phrases["space"].join(filter(None, parts))


def fact(finding: Finding) -> str:
    """What a finding says, without its place and without a full stop."""
    return _filled(_entry(finding)[0], finding)


def advice(finding: Finding) -> str:
    return _filled(_entry(finding)[1], finding)


def detail(finding: Finding) -> str:
    """The exact place in memory, and the other thread of a race; '' if it has none."""
    if "offset" not in finding.values or "of" not in finding.words or kind_of(finding).check != "race":
        return ""
    return _filled(_catalogue().phrases["detail"], finding)


def phrase(name: str, **values: str) -> str:
    """What a report adds to a finding: "passes" with its `cause`, "seen" with the `test` whose run with checks found
    it."""
    return _catalogue().phrases[name].format(**values)


def quoted(finding: Finding, line_of: SourceLine) -> str:
    """ "kernel.cu:61: `acc[x] += p * v[key * d + x];`", or its place alone without the source; '' without a place."""
    if finding.place is None:
        return ""
    text = line_of(finding.place.file, finding.place.line)
    text = " ".join((text if finding.place.file.endswith(".py") else _COMMENT.sub("", text)).split())
    text = text if len(text) <= MAX_QUOTED else text[: MAX_QUOTED - 1] + "…"
    place = f"{finding.place}{_called(finding, 'here', _catalogue())}"
    return f"{place}: `{text}`" if text else place


def short_kernel(kernel: str) -> str:
    """A kernel's name without return type, namespaces and parameters, for example `attention<32,4>`."""
    name = kernel.strip()
    if name.endswith(")"):
        depth = 0
        for place in range(len(name) - 1, -1, -1):
            depth += {")": 1, "(": -1}.get(name[place], 0)
            if depth == 0:
                name = name[:place]
                break
    stem, bracket, arguments = name.removeprefix("void ").replace(" ", "").partition("<")
    return stem.rpartition("::")[2] + bracket + arguments


def dim_text(dim: tuple[int, int, int] | None) -> str:
    return f"({dim[0]},{dim[1]},{dim[2]})" if dim is not None else ""


def _entry(finding: Finding) -> tuple[str, str]:
    """The fact and advice of a finding's kind, in the variant that its word `how` names if there is one."""
    kind = "race" if finding.kind in ("race_of_writes", "race_in_warp") else finding.kind
    for each in (_catalogue(), ENGLISH):
        for key in (f"{kind}.{finding.words.get('how', '')}", kind):
            if key in each.sentences:
                return each.sentences[key]
    return finding.kind, ""


def _begins_with_place(finding: Finding) -> bool:
    return kind_of(finding).leads and "{here}" not in _entry(finding)[0]


def _continues(finding: Finding) -> bool:
    """Whether the fact continues the sentence that begins with the thread's place: "thread (0,0,0) … wrote 4 bytes"."""
    said = _entry(finding)[0]
    return finding.kernel is not None and said.startswith(("{did}", "{touched}", "read ", "used "))


def _where(finding: Finding, language: Catalogue) -> str:
    """ "main.cu:60: kernel attention, thread (3,0,0) of block (0,0,0)", without the parts that are unknown."""
    place = f"{finding.place}{_called(finding, 'here', language)}" if finding.place else ""
    names = {"place": place, "kernel": short_kernel(finding.kernel or "")}
    names |= {"thread": dim_text(finding.thread), "block": dim_text(finding.block)}
    return _render(language.phrases["where"], names | _terms(finding)).removeprefix(": ").removeprefix("：")


def _filled(template: str, finding: Finding) -> str:
    language = _catalogue()
    names = _fields(finding) | _words(finding, language) | _terms(finding)
    names |= {name: _number(value, language) for name, value in finding.values.items()}
    _add_memory(names, finding, language)
    _add_race(names, finding, language)
    first = finding.block == finding.thread == (0, 0, 0)
    names["beyond_first"] = "" if first or finding.block is None else language.phrases["beyond_first"]
    return _render(template, names)


def _fields(finding: Finding) -> dict[str, str]:
    return {
        "file": finding.file or "",
        "line": str(finding.line or ""),
        "array": finding.array or "",
        "allocated": str(finding.allocated or ""),
        "other": str(finding.other or ""),
        "place": str(finding.place or ""),
        "other_line": str(finding.other.line if finding.other else ""),
    }


def _words(finding: Finding, language: Catalogue) -> dict[str, str]:
    names = {name: language.words.get(name, {}).get(word, word) for name, word in finding.words.items()}
    for name, (word, table) in _ELSEWHERE.items():
        if word in finding.words:
            names[name] = language.words[table].get(finding.words[word], finding.words[word])
    if "launched" in finding.words:
        names["launched"] = short_kernel(finding.words["launched"])
    return names


_ELSEWHERE = {
    "whom": ("between", "whom"),
    "bad_free": ("how", "bad_free"),
    "direction": ("how", "direction"),
    "touched": ("how", "touched"),
    "host_does": ("does", "host_does"),
    "says": ("says", "swizzle"),
    "wrote": ("wrote", "swizzle"),
}
"""Words of a catalogue that another word of the finding chooses: (that word, the catalogue's table)."""


def _add_memory(names: dict[str, str], finding: Finding, language: Catalogue) -> None:
    """Phrases about the memory of an access: `memory`, its place in it (`spot`), where the access is (`relation`)."""
    of = finding.words.get("of", "")
    form = "memory_named" if of == "allocation" and finding.array and finding.allocated else f"memory_{of}"
    names["memory"] = _render(language.phrases[form], names) if form in language.phrases else names["array"]
    inside = "offset" in finding.values and names["memory"]
    names["spot"] = _render(language.phrases["spot"], names) if inside else names["memory"] or names["array"]
    relation = f"relation_{finding.words.get('relation', '')}"
    names["relation"] = _render(language.phrases[relation], names) if relation in language.phrases else ""


def _add_race(names: dict[str, str], finding: Finding, language: Catalogue) -> None:
    """Phrases about the two sides of a race: `here` and `there`, and the memory as `named`."""
    names["here"] = f"{finding.place or ''}{_called(finding, 'here', language)}"
    same = finding.place is not None and finding.place == finding.other
    there = f"{finding.other or ''}{_called(finding, 'there', language)}"
    names["there"] = language.phrases["same_line"] if same else there
    form = "named_array" if finding.array else "named_allocated" if finding.allocated else "named_unknown"
    names["named"] = _render(language.phrases[form], names)
    names["barrier"] = names["WARP_BARRIER" if finding.words.get("between") == "lanes" else "BARRIER"]
    if "whom" in names:
        names["whom"] = _render(names["whom"], names)


def _called(finding: Finding, side: str, language: Catalogue) -> str:
    """ " (called at line 40)", if a side of the finding is in a helper function; else ''."""
    lines = finding.values.get(f"called_{side}")
    form = "called" if isinstance(lines, tuple) and len(lines) > 1 else "called_once"
    return language.phrases[form].format(lines=_number(lines, language)) if lines else ""


def _terms(finding: Finding) -> dict[str, str]:
    return dict(_TRITON if (finding.file or "").endswith(".py") else _CUDA)


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
