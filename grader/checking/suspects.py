"""Finds the line of a submission that a diagnosis refers to.

A diagnosis names the step of the computation that went wrong (O was not rescaled, the loop over the keys ends early),
but not the line with that step. This module looks for it in the source as a reader would. The line with an exponential
of a score and a maximum is the weight, the sum of products with that weight is O, and the loop around both is the loop
over the keys. It searches text and does not parse C++. If a program is written in another way, the diagnosis names no
line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from grader.checking.host_text import BATCH, READ, WORDS, HostText
from grader.checking.kernel_text import MAX
from grader.checking.source_lines import WORD, Line, added, assigned_value, assignment, body, is_around, parenthesised
from grader.checking.triton_lines import TritonLines
from grader.operators.base import Step
from grader.sandbox.room import Unreadable, confined

_EXP2 = re.compile(r"\b(?:__)?exp2f?\s*\(")
_MIN = re.compile(r"\b(?:f?min|fminf)\s*\(")
_WHOLE_DIVISION = re.compile(r"=\s*\(?\s*1\s*/")
"""scale = 1 / …, which is 0 in integer arithmetic"""
ROOT, _SCALE = re.compile(r"\b(?:r?sqrt|pow)f?\s*\("), re.compile(r"\b\w*(?:scale|sqrt)\w*\s*=", re.IGNORECASE)
_ROW = re.compile(r"=[^=;]*\bblockIdx\s*\.\s*[xyz]\b[^;]*\bthreadIdx\b")
_FUNCTION = re.compile(r"\b__(?:device|global)__\b[^()]*?\b(\w+)\s*\(")
_FALLBACKS: dict[Step, tuple[Step, ...]] = {
    "columns": ("scores",),
    "scale": ("store_scores", "scores"),
    "store_scores": ("scores",),
    "tile": ("keys",),
    "bound": ("keys",),
    "score_start": ("scores",),
    "shuffled_maximum": ("maximum", "weight"),
    "shuffle_down": ("shuffle",),
    "write_count": ("write",),
    "grid": ("launch",),
    "rescale": ("output_sum", "weight"),
    "total": ("weight",),
    "total_of_one": ("total",),
    "maximum": ("weight",),
    "next_maximum": ("maximum",),
    "shuffle": ("scores",),
    "zero_scale": ("scores",),
    "header": ("launch",),
    "batch_of_q": ("batch",),
    "batch_of_k": ("batch",),
    "batch_of_v": ("batch",),
    "order": ("launch",),
    "read_file": ("read",),
    "division": ("store",),
    "store": ("division",),
    "load_q": ("scores",),
    "load_k": ("scores",),
    "load_v": ("output_sum",),
    "batch": ("read", "row", "launch"),
    "row": ("launch",),
    "copy_back": ("write",),
    "read": ("launch",),
}


def suspect(files: Sequence[tuple[str, bytes]], steps: Sequence[Step]) -> Line | None:
    """The line of the first of `steps` that is found in a submission's files; None if none is."""
    return _first_suspect(tuple(files), tuple(steps))


@lru_cache(maxsize=64)  # every failed test of a submission asks, and hostile text takes the whole time limit
def _first_suspect(files: tuple[tuple[str, bytes], ...], steps: tuple[Step, ...]) -> Line | None:
    try:
        return _suspect(files, steps)
    except Unreadable:
        return None


def launch_for_another(files: Sequence[tuple[str, bytes]], wanted: str, other: str) -> Line | None:
    """See `HostText.launch_for_another`."""
    try:
        return _launch_for_another(tuple(files), wanted, other)
    except Unreadable:
        return None


@confined()
def _launch_for_another(files: tuple[tuple[str, bytes], ...], wanted: str, other: str) -> Line | None:
    return HostText(files).launch_for_another(wanted, other)


@confined()
def _suspect(files: tuple[tuple[str, bytes], ...], steps: tuple[Step, ...]) -> Line | None:
    if any(name.endswith(".py") for name, _ in files):
        return _first(TritonLines(files).of, steps)
    return Suspects(files).line(*steps)


def _first(lines_of: Callable[[Step], Iterable[Line]], steps: Sequence[Step]) -> Line | None:
    for step in steps:
        for each in (step, *_FALLBACKS.get(step, ())):
            if found := next(iter(lines_of(each)), None):
                return found
    return None


class Suspects(HostText):
    """Finds the line of each step in a CUDA program."""

    def line(self, *steps: Step) -> Line | None:
        """The line of the first of `steps` that is found; None if none is."""
        return _first(self._lines_of, steps)

    def _lines_of(self, step: Step) -> Iterable[Line]:
        match step:
            case "weight":
                return (line for line in self.exponentials if not self.is_rescale(line))
            case "rescale":
                return (line for line in self.exponentials if self.is_rescale(line))
            case "maximum":
                return self.matching(MAX)
            case "overwritten_maximum":
                return self.overwritten_maxima
            case "total_of_one":
                return [line for line in self.totals if re.search(r"\bif\s*\([^;]*==\s*0", line.code)]
            case "reset":
                return self.launches_before_batches
            case "exponential":
                minima = (line for line in self.matching(_MIN) if self.maxima & set(WORD.findall(line.code)))
                rescaled = (line for line in self.exponentials if self.is_rescale(line))
                return (*minima, *rescaled, *self.exponentials)
            case "zero_scale":
                return self.matching(_WHOLE_DIVISION)
            case "header":
                return self.matching(READ)
            case "state_start":
                return self.first_maxima
            case "next_maximum":
                return self.kept_maxima
            case "columns":
                return self.column_loops
            case "scores":
                return (line for line in self.products_of_elements if self.is_score(line))
            case "output_sum":
                return self.output_sums
            case "total":
                return self.totals
            case "keys" | "tile":
                return self._loops(step)
            case "division":
                candidates = (*self.stores, *reversed(self.statements))
                return (line for line in candidates if "/" in body(line) and not ROOT.search(line.code))
            case "bound":
                return self._bounds
            case "score_start":
                return self._score_starts
            case "shuffled_maximum":
                return [line for line in self.matching(MAX) if "__shfl" in line.code][::-1]
            case "write_count":
                return self.written_counts
            case "grid":
                return self.grids
            case "store":
                return self.stores
            case "scale":
                return [line for pattern in (ROOT, _SCALE) for line in self.matching(pattern) if self._is_used(line)]
            case "store_scores":
                first = [assignment(line) for line in self._lines_of("scores")][:1]
                scores = {said[1] for said in first if said is not None}
                return (line for line in self.statements if _is_stored(line, scores))
            case "base_two":
                return self._odd_one_out(_EXP2)
            case "load_q" | "load_k" | "load_v":
                return self._loads(step)
            case "batch_of_q" | "batch_of_k" | "batch_of_v":
                return self._pointers(step[-1])
            case "batch":
                return self._batch_offsets
            case "batch_of_o":
                return [*self.repeated_copies_back, *self.stores]
            case "row":
                return (*self.matching(_ROW), *self.matching(WORDS["row"]))
            case "total_start":
                said = next((assignment(line) for line in self.totals), None)
                one = re.compile(rf"\b{said[1] if said else '(?!)'}\b(?:\s*\[[^\]]*\])*\s*=\s*1(?:\.0*)?f?\s*[,;]")
                return self.matching(one)
            case "tile_launch":
                around = [loop for loop in self.loops if loop[0] in self.loops_around_launches]
                return [
                    line for line in self.matching(WORDS["launch"]) if any(is_around(*loop, line) for loop in around)
                ]
            case "value_by_row":
                return self._values_by_row
            case "order" | "read_order":
                return self.out_of_order
            case "read_file":
                return list(self.matching(READ))[-1:]
            case _:
                return self.matching(WORDS[step])

    def _is_used(self, line: Line) -> bool:
        """Whether the number that `line` sets is a factor or a divisor anywhere; true if it sets none."""
        said = assignment(line)
        factor = re.compile(rf"[*/]=?\s*\(?\s*{said[1]}\b|\b{said[1]}\s*\)?\s*[*/]") if said else None
        return factor is None or "<<<" in line.code or any(factor.search(each.code) for each in self.lines)

    def _odd_one_out(self, pattern: re.Pattern[str]) -> list[Line]:
        """The line that matches, if there is only one."""
        found = list(self.matching(pattern))
        return found if len(found) == 1 else []

    def _loads(self, step: Step) -> list[Line]:
        """Lines that load a tile of Q, K or V into an array from which the scores or O are computed."""
        sums = list(self._lines_of("output_sum" if step == "load_v" else "scores"))
        used = {word for line in (*sums, *self.products)[:2] for word in WORD.findall(assigned_value(line))}
        if step == "load_v":
            used = {word for line in self.products for word in WORD.findall(assigned_value(line))} - self.weights
        loads = [(line, assignment(line)) for line in self.statements if not added(line)]
        filled = [line for line, said in loads if said and said[2] and said[1] in used and re.search(r"[\[(]", said[4])]
        queries = [line for line in filled[:1] if len(filled) > 1 and _holds_queries(filled)]
        return queries if step == "load_q" else [line for line in filled if line not in queries]

    # ---- where matrices begin ---------------------------------------------------------------------------------------

    def _pointers(self, letter: str) -> list[Line]:
        """The line that sets the pointer to Q, K or V (by its `letter`), or the line that reads the matrix."""
        loads = self._loads("load_v" if letter == "v" else "load_k" if letter == "k" else "load_q")
        others = "qkv".replace(letter, "")
        for line in (*loads, *self.output_sums, *self._lines_of("scores")):
            names = re.findall(r"\b([A-Za-z_]\w*)\s*\[", assigned_value(line))
            if line in loads and names and letter not in "".join(names).lower():
                return [line]  # it loads another matrix than the one for which its tile is used
            for name in names:
                if letter in name.lower():
                    sets = re.compile(rf"\*\s*(?:(?:const|__restrict__)\s+)*{name}\s*=|(?:^|;)\s*{name}\s*\+?=")
                    sources = (
                        rf"(?:[^,]*\+|[^,{letter}]*[{others}][^,{letter}]*,)"  # at an offset, or of another matrix
                    )
                    copies = re.compile(rf"\bcudaMemcpy\w*\s*\(\s*\w*{letter}\w*\s*,{sources}", re.IGNORECASE)
                    moved = re.compile(rf"(?:^|;)\s*\w*[{others}]\w*\s*\+=", re.IGNORECASE)
                    set_at = [s for s in self.statements if sets.search(s.code)]
                    return [*self.matching(copies), *set_at, *self.matching(moved), line]
        return []

    @property
    def _values_by_row(self) -> list[Line]:
        """Lines with V at an address that contains the row's number."""
        found = (re.search(r"\b(\w+)\s*=", line.code) for line in self._lines_of("row"))
        rows = "|".join({name[1] for name in found if name}) or "(?!)"
        indexed = re.compile(rf"\b\w*[vV]\w*\s*[+\[][^,;\]]*\b(?:{rows})\b")
        return [line for line in self.matching(indexed) if "__global__" not in line.code]

    @property
    def _batch_offsets(self) -> list[Line]:
        """Lines that multiply the batch's number, then those that set it."""
        names = {
            name
            for line in self.matching(BATCH)
            if "blockDim" not in line.code
            for found in BATCH.finditer(line.code)
            for name in found.groups()
            if name
        }
        number = "|".join([r"\bblockIdx\s*\.\s*[yz]\b", *(rf"\b{re.escape(name)}\b" for name in names)])
        offsets = [line for line in self.statements if "blockDim" not in line.code]
        product = re.compile(rf"=.*(?:(?:{number})\s*\)?\s*\*|\*\s*\(?(?:{number}))")
        numbers = [line for line in self.matching(BATCH) if "blockDim" not in line.code]
        return [*(line for line in offsets if product.search(line.code)), *numbers]

    # ---- loops ------------------------------------------------------------------------------------------------------

    def _loops(self, step: Step) -> list[Line]:
        """Loops around the weights, the outermost first for `keys`, the innermost for `tile`."""
        weight = next(iter(self._lines_of("weight")), None)
        inside = weight if step == "tile" else next(iter(self.products), weight)
        if inside is None:
            return []
        inside = self._use_of_function_around(inside)
        around = [(line, last) for line, last in self.loops if is_around(line, last, inside)]
        scores = next(iter(self._lines_of("scores")), None)
        both = [line for line, last in around if scores is not None and is_around(line, last, scores)]
        all_around = [line for line, _ in around]
        if step == "keys":
            return both or self.loops_around_launches or all_around
        return all_around[::-1]

    @property
    def column_loops(self) -> list[Line]:
        """The innermost loops around the scores, the loads of Q and K and the results, unlike ones first: those that
        end at a number, then those with the rarest ends."""
        inside = (*self._lines_of("scores"), *self._loads("load_q"), *self._loads("load_k"), *self.stores)
        around = [[loop for loop, last in self.loops if is_around(loop, last, line)] for line in inside]
        headers = [_header(loop) for loop, _ in self.loops]
        loops = dict.fromkeys(each[-1] for each in around if each)
        return sorted(loops, key=lambda loop: (not re.search(r"<=?\s*\d", _header(loop)), headers.count(_header(loop))))

    @property
    def _bounds(self) -> list[Line]:
        """Lines such as `tiles = n / 32;` that compute the end of a loop over the keys."""
        ends = (re.search(r";[^;<]*<=?\s*([A-Za-z_]\w*)\s*;", loop.code) for loop in self._loops("keys"))
        sets = [re.compile(rf"\b{end[1]}\s*=[^=;]*/") for end in ends if end]
        return [line for each in sets for line in self.matching(each)]

    @property
    def _score_starts(self) -> list[Line]:
        """Lines that declare the sum of a score with its first value, such as `float s = 0;`."""
        said = next((assignment(line) for line in self._lines_of("scores")), None)
        if said is None:
            return []
        first = re.compile(
            rf"\b(?:float|double|auto|half2?|float[24])\b[^;]*\b{said[1]}\s*(?:\[[^\]]*\]\s*)*=\s*[{{\d]"
        )
        return list(self.matching(first))

    def _use_of_function_around(self, inside: Line) -> Line:
        """The first call of the __device__ function that `inside` is in; `inside` itself if it is in a kernel."""
        heads = [line for line in self.matching(_FUNCTION) if line.file == inside.file and line.number <= inside.number]
        name = _FUNCTION.search(heads[-1].code) if heads else None
        if name is None or "__global__" in heads[-1].code:
            return inside
        call = re.compile(rf"\b{name[1]}\s*(?:<[^<>()]*>)?\s*\(")
        calls = (line for line in self.matching(call) if not _FUNCTION.search(line.code))
        return next((line for line in calls if any(is_around(*loop, line) for loop in self.loops)), inside)


def _header(loop: Line) -> str:
    """The header of a loop in a form that does not depend on the name of its variable."""
    code = loop.code[loop.code.index("for") :]
    text = parenthesised(code[code.index("(") :])
    found = re.search(r"(\w+)\s*=", text)
    return re.sub(rf"\b{found[1]}\b", "@", text) if found else text


def _holds_queries(filled: Sequence[Line]) -> bool:
    """Whether the name of the first array that is filled suggests that it holds Q."""
    said = assignment(filled[0])
    return said is not None and "q" in said[1].lower()


def _is_stored(line: Line, names: set[str]) -> bool:
    """Whether the line stores one of `names` into an array."""
    said = assignment(line)
    return said is not None and bool(said[2]) and said[3] == "=" and bool(names & set(WORD.findall(said[4])))
