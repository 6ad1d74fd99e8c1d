"""Finds the line of a submission that a diagnosis refers to.

A diagnosis names the step of the computation that went wrong (O was not rescaled, the loop over the keys ends early),
but not the line with that step. This module looks for it in the source as a reader would: the line with an exponential
of a score and a maximum is the weight; the sum of products with that weight is O; the loop around both is the one over
the keys. It searches text and does not parse C++. If a program is written in another way, the diagnosis names no line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from grader.operators.base import Step
from grader.sandbox.bounded import Bounded, Exceeded

_examiner = Bounded(wall_s=3, memory_bytes=1 << 30)
"""Regular expressions run over untrusted text, so they run under limits."""
_SOURCES = {".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc"}
_MAX_LINES = 4000
"""Lines of all files together; a longer submission is not searched."""
_NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
_EXP = re.compile(r"\b(?:__)?exp2?f?\s*\(")
_EXP2 = re.compile(r"\b(?:__)?exp2f?\s*\(")
_MAX = re.compile(r"\b(?:f?max|fmaxf)\s*\(")
_ASSIGNED = re.compile(r"\b([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)([+*]?=)(?!=)(.*)", re.DOTALL)
_MAXIMUM = re.compile(r"\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*(?:-\s*(?:INFINITY|FLT_MAX|HUGE_VALF)|(?:f?max|fmaxf)\s*\()")
_ROOT, _SCALE = re.compile(r"\br?sqrtf?\s*\("), re.compile(r"\bscale\w*\s*=", re.IGNORECASE)
_COPIED = re.compile(r"\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*(\w+)(?:\s*\[[^\]]*\])*\s*[,;]")
_WORD = re.compile(r"[A-Za-z_]\w*")
_FALLBACKS: dict[Step, tuple[Step, ...]] = {
    "scale": ("store_scores", "scores"),
    "store_scores": ("scores",),
    "tile": ("keys",),
    "rescale": ("output_sum", "weight"),
    "total": ("weight",),
    "maximum": ("weight",),
    "division": ("store",),
    "load_q": ("scores",),
    "load_k": ("scores",),
    "load_v": ("output_sum",),
    "batch": ("row", "launch"),
    "row": ("launch",),
    "copy_back": ("write",),
    "read": ("launch",),
}


@dataclass(frozen=True)
class Line:
    """A line of a submission. `code` is its text without comments and strings."""

    file: str
    number: int
    text: str
    code: str

    @property
    def quoted(self) -> str:
        """ "kernel.cu:61: `acc[x] += p * v[key * d + x];`" """
        text = " ".join(re.sub(r"//.*", "", self.text).split())
        return f"{self.file}:{self.number}: `{text if len(text) <= 80 else text[:79] + '…'}`"


def suspect(files: Sequence[tuple[str, bytes]], steps: Sequence[Step]) -> Line | None:
    """The line of the first of `steps` that is found in a submission's files; None if none is."""
    try:
        return _examiner.call(_suspect, tuple(files), tuple(steps))
    except Exceeded:
        return None


def _suspect(files: tuple[tuple[str, bytes], ...], steps: tuple[Step, ...]) -> Line | None:
    return Suspects(files).line(*steps)


@dataclass(frozen=True)
class Suspects:
    """The source of a submission, by name and content."""

    files: tuple[tuple[str, bytes], ...]

    def line(self, *steps: Step) -> Line | None:
        """The line of the first of `steps` that is found; None if none is."""
        for step in steps:
            for each in (step, *_FALLBACKS.get(step, ())):
                if found := next(iter(self._lines_of(each)), None):
                    return found
        return None

    @cached_property
    def _lines(self) -> tuple[Line, ...]:
        lines: list[Line] = []
        for name, content in self.files:
            if PurePosixPath(name).suffix in _SOURCES:
                text = content.decode(errors="replace")
                code = _NOISE.sub(lambda noise: re.sub(r"[^\n]", " ", noise[0]), text)
                lines += [
                    Line(name, number, *pair)
                    for number, pair in enumerate(zip(text.split("\n"), code.split("\n"), strict=True), 1)
                ]
        return tuple(lines) if len(lines) <= _MAX_LINES else ()

    def _lines_of(self, step: Step) -> Iterable[Line]:
        match step:
            case "weight":
                return (line for line in self._exponentials if not self._is_rescale(line))
            case "rescale":
                return (line for line in self._exponentials if self._is_rescale(line))
            case "maximum":
                return self._matching(_MAX)
            case "scores":
                return (line for line in self._sums if re.search(r"\*|fma", _added(line)) and self._is_score(line))
            case "output_sum":
                return self._output_sums
            case "total":
                return self._totals
            case "keys" | "tile":
                return self._loops(step)
            case "division":
                return (line for line in (*self._stores, *reversed(self._statements)) if "/" in _body(line))
            case "store":
                return self._stores
            case "scale":
                return (*self._matching(_ROOT), *self._matching(_SCALE))
            case "store_scores":
                first = [_ASSIGNED.search(_body(line)) for line in self._lines_of("scores")][:1]
                scores = {said[1] for said in first if said is not None}
                return (line for line in self._statements if _is_stored(line, scores))
            case "base_two":
                return self._odd_one_out(_EXP2)
            case "load_q" | "load_k" | "load_v":
                return self._loads(step)
            case _:
                return self._matching(_WORDS[step])

    def _matching(self, pattern: re.Pattern[str]) -> Iterator[Line]:
        return (line for line in self._lines if pattern.search(line.code))

    def _odd_one_out(self, pattern: re.Pattern[str]) -> list[Line]:
        """The line that matches, if there is only one."""
        found = list(self._matching(pattern))
        return found if len(found) == 1 else []

    # ---- names of maxima and weights ------------------------------------------------------------------------------

    @cached_property
    def _statements(self) -> tuple[Line, ...]:
        """Lines that assign something and use no host function, and so probably belong to a kernel."""
        host = re.compile(r"\b(?:cuda[A-Z]\w*|malloc|sizeof|fread|fwrite|argv|std::vector)\b")
        return tuple(line for line in self._lines if _ASSIGNED.search(_body(line)) and not host.search(line.code))

    @cached_property
    def _exponentials(self) -> tuple[Line, ...]:
        return tuple(self._matching(_EXP))

    @cached_property
    def _maxima(self) -> frozenset[str]:
        """Names that hold a maximum, and names that they are copied to or from."""
        names = {found[1] for line in self._lines for found in _MAXIMUM.finditer(line.code)}
        copies = [found.groups() for line in self._lines for found in _COPIED.finditer(line.code)]
        for _ in range(3):
            names |= {name for pair in copies for name in pair if names & set(pair) and not name.isdigit()}
        return frozenset(names)

    def _is_rescale(self, line: Line) -> bool:
        """Whether the line has the exponential of a difference of two maxima, exp(m_old - m_new)."""
        found = _EXP.search(line.code)
        inside = _parenthesised(line.code[found.end() - 1 :]) if found else ""
        words = re.findall(r"[A-Za-z_]\w*(?=\s*(?:\[|[-+)]|$))", re.sub(r"\[[^\]]*\]", "[", inside))
        return len(words) >= 2 and set(words) <= self._maxima

    @cached_property
    def _weights(self) -> frozenset[str]:
        return frozenset(
            found[1]
            for line in self._exponentials
            if not self._is_rescale(line) and (found := _ASSIGNED.search(_body(line))) is not None and found[3] == "="
        )

    @cached_property
    def _sums(self) -> tuple[Line, ...]:
        """Lines that add to something."""
        return tuple(line for line in self._statements if _added(line))

    def _weighs(self, line: Line) -> bool:
        value = _assigned_value(line)
        return bool(self._weights & set(_WORD.findall(value))) or (
            _EXP.search(value) is not None and not self._is_rescale(line)
        )

    def _is_score(self, line: Line) -> bool:
        """Whether a sum of products contains neither a weight nor a rescaling factor."""
        return not self._weighs(line) and not self._shrinking & set(_WORD.findall(_assigned_value(line)))

    @cached_property
    def _shrinking(self) -> frozenset[str]:
        """Names of the factors by which sums are rescaled."""
        found = (_ASSIGNED.search(_body(line)) for line in self._exponentials if self._is_rescale(line))
        return frozenset(said[1] for said in found if said is not None)

    @cached_property
    def _products(self) -> tuple[Line, ...]:
        """Lines that add a weight times something."""
        names = "|".join(map(re.escape, sorted(self._weights))) or "(?!)"
        weight = rf"(?:\b(?:{names})\b(?:\s*\[[^\]]*\])*)"
        fused = rf"\bfmaf?\s*\([^,]*(?:,[^,]*)?{weight}"
        near = re.compile(rf"{weight}\s*\)?\s*\*|\*\s*\(?\s*{weight}|{fused}")
        return tuple(
            line
            for line in self._sums
            if near.search(_assigned_value(line))
            or (_EXP.search(_assigned_value(line)) and "*" in _EXP.split(_assigned_value(line))[-1].partition(")")[2])
        )

    @property
    def _output_sums(self) -> list[Line]:
        """Lines that sum up O: first those that merge a tile's sum into it, then the sums themselves."""
        parts = {found[1] for line in self._products if (found := _ASSIGNED.search(_body(line)))}
        merged = [
            line
            for line in self._sums
            if line not in self._products
            and (found := _ASSIGNED.search(_body(line)))
            and found[1] not in parts
            and parts & set(_WORD.findall(found[4]))
        ]
        return [*merged, *self._products]

    @property
    def _totals(self) -> list[Line]:
        """Lines that sum up l, the weights' sum: first those that merge a tile's sum, then the sums themselves."""
        plain = [line for line in self._sums if self._weighs(line) and line not in self._products]
        parts = {found[1] for line in plain if (found := _ASSIGNED.search(_body(line)))}
        merged = [
            line
            for line in self._sums
            if line not in plain
            and (found := _ASSIGNED.search(_body(line)))
            and found[1] not in parts
            and parts & set(_WORD.findall(found[4]))
        ]
        return [*merged, *plain]

    @cached_property
    def _stores(self) -> list[Line]:
        """Lines that write to an array that is a parameter of a kernel, the last first, because results are written
        last."""
        heads = re.findall(r"__global__[^;{]*\(([^;{]*)\)\s*\{", "\n".join(line.code for line in self._lines))
        given = {
            word[-1]
            for head in heads
            for parameter in head.split(",")
            if "*" in parameter and "const" not in parameter.partition("*")[0] and (word := _WORD.findall(parameter))
        }
        found = [(line, _ASSIGNED.search(_body(line))) for line in self._statements]
        return [line for line, said in reversed(found) if said and said[1] in given and said[2]]

    def _loads(self, step: Step) -> list[Line]:
        """Lines that load a tile of Q, K or V into an array from which the scores or O are computed."""
        sums = list(self._lines_of("output_sum" if step == "load_v" else "scores"))
        used = {word for line in (*sums, *self._products)[:2] for word in _WORD.findall(_assigned_value(line))}
        if step == "load_v":
            used = {word for line in self._products for word in _WORD.findall(_assigned_value(line))} - self._weights
        loads = [(line, _ASSIGNED.search(_body(line))) for line in self._statements if not _added(line)]
        filled = [line for line, said in loads if said and said[2] and said[1] in used and "[" in said[4]]
        queries = [line for line in filled[:1] if len(filled) > 1 and _holds_queries(filled)]
        return queries if step == "load_q" else [line for line in filled if line not in queries]

    # ---- loops ------------------------------------------------------------------------------------------------------

    def _loops(self, step: Step) -> list[Line]:
        """Loops around the weights, the outermost first for `keys`, the innermost for `tile`."""
        weight = next(iter(self._lines_of("weight")), None)
        inside = weight if step == "tile" else next(iter(self._products), weight)
        if inside is None:
            return []
        around = [(line, last) for line, last in self._for_loops if _is_around(line, last, inside)]
        scores = next(iter(self._lines_of("scores")), None)
        both = [line for line, last in around if scores is not None and _is_around(line, last, scores)]
        all_around = [line for line, _ in around]
        return both or all_around if step == "keys" else all_around[::-1]

    @cached_property
    def _for_loops(self) -> list[tuple[Line, int]]:
        """Every for loop, with the number of its last line."""
        loops = []
        for place, line in enumerate(self._lines):
            if re.search(r"\bfor\s*\(", line.code):
                loops.append((line, _last_line(self._lines[place : place + 400])))
        return loops


_WORDS: dict[str, re.Pattern[str]] = {
    "row": re.compile(r"=[^=;]*\bblockIdx\s*\.\s*x\b"),
    "batch": re.compile(r"=[^=;]*\bblockIdx\s*\.\s*[yz]\b"),
    "launch": re.compile(r"<<<"),
    "copy_back": re.compile(r"\bcudaMemcpyDeviceToHost\b"),
    "write": re.compile(r"\bfwrite\s*\(|\.write\s*\("),
    "read": re.compile(r"\bcudaMemcpyHostToDevice\b"),
}


def _holds_queries(filled: Sequence[Line]) -> bool:
    """Whether the name of the first array that is filled suggests that it holds Q."""
    said = _ASSIGNED.search(_body(filled[0]))
    return said is not None and "q" in said[1].lower()


def _is_stored(line: Line, names: set[str]) -> bool:
    """Whether the line stores one of `names` into an array."""
    said = _ASSIGNED.search(_body(line))
    return said is not None and bool(said[2]) and said[3] == "=" and bool(names & set(_WORD.findall(said[4])))


def _body(line: Line) -> str:
    """The statement of a line, without any `for (…)`, `if (…)` or `while (…)` in front of it."""
    code = line.code
    while found := re.match(r"\s*(?:for|if|while)\s*(?=\()", code):
        code = code[found.end() :]
        code = code[len(_parenthesised(code)) + 2 :]
    return code


def _parenthesised(code: str) -> str:
    """The text inside the parentheses with which `code` begins, or the whole rest if they are not closed."""
    depth = 0
    for place, character in enumerate(code):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0:
            return code[1:place]
    return code[1:]


def _assigned_value(line: Line) -> str:
    found = _ASSIGNED.search(_body(line))
    return found[4] if found else ""


def _added(line: Line) -> str:
    """The value of an assignment that adds to its target, as in `a += …`, `a = a + …`, `a = fmaf(…, a)`; else ''."""
    found = _ASSIGNED.search(_body(line))
    if found is None:
        return ""
    name, _, sign, value = found.groups()
    again = re.search(rf"\b{re.escape(name)}\b", value) is not None
    return value if sign == "+=" or (sign == "=" and again and ("+" in value or "fma" in value)) else ""


def _is_around(loop: Line, last: int, line: Line) -> bool:
    return loop.file == line.file and loop.number <= line.number <= last


def _last_line(lines: Sequence[Line]) -> int:
    """The number of the last line of the loop that begins in the first of `lines`."""
    depth = braces = 0
    begun = False
    for line in lines:
        code = line.code[line.code.index("for") :] if line is lines[0] else line.code
        for character in code:
            depth += {"(": 1, ")": -1}.get(character, 0)
            braces += {"{": 1, "}": -1}.get(character, 0)
            begun = begun or character == "{"
            if depth == 0 and ((begun and braces == 0) or (not begun and character == ";")):
                return line.number
    return lines[-1].number
