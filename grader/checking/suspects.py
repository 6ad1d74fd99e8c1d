"""Finds the line of a submission that a diagnosis refers to.

A diagnosis names the step of the computation that went wrong (O was not rescaled, the loop over the keys ends early),
but not the line with that step. This module looks for it in the source as a reader would. The line with an exponential
of a score and a maximum is the weight, the sum of products with that weight is O, and the loop around both is the loop
over the keys. It searches text and does not parse C++. If a program is written in another way, the diagnosis names no
line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from grader.checking.host_text import BATCH, READ, WORDS, HostText
from grader.checking.kernel_text import MAX
from grader.checking.source_lines import WORD, Line, added, assigned_value, assignment, body, is_around
from grader.operators.base import Step
from grader.sandbox.bounded import Bounded, Exceeded

_examiner = Bounded(wall_s=15, memory_bytes=1 << 30)
"""Regular expressions run over untrusted text, so they run under limits. The search takes milliseconds; the time limit
is this long so that the line is also found on a busy machine."""
_EXP2 = re.compile(r"\b(?:__)?exp2f?\s*\(")
_MIN = re.compile(r"\b(?:f?min|fminf)\s*\(")
_WHOLE_DIVISION = re.compile(r"=\s*\(?\s*1\s*/")
"""scale = 1 / …, which is 0 in integer arithmetic"""
_ROOT, _SCALE = re.compile(r"\br?sqrtf?\s*\("), re.compile(r"\bscale\w*\s*=", re.IGNORECASE)
_FUNCTION = re.compile(r"\b__(?:device|global)__\b[^()]*?\b(\w+)\s*\(")
_FALLBACKS: dict[Step, tuple[Step, ...]] = {
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
    try:
        return _examiner.call(_suspect, tuple(files), tuple(steps))
    except Exceeded:
        return None


def launch_for_another(files: Sequence[tuple[str, bytes]], wanted: str, other: str) -> Line | None:
    """See `HostText.launch_for_another`."""
    try:
        return _examiner.call(_launch_for_another, tuple(files), wanted, other)
    except Exceeded:
        return None


def _launch_for_another(files: tuple[tuple[str, bytes], ...], wanted: str, other: str) -> Line | None:
    return HostText(files).launch_for_another(wanted, other)


def _suspect(files: tuple[tuple[str, bytes], ...], steps: tuple[Step, ...]) -> Line | None:
    return Suspects(files).line(*steps)


class Suspects(HostText):
    """Finds the line of each step in a submission."""

    def line(self, *steps: Step) -> Line | None:
        """The line of the first of `steps` that is found; None if none is."""
        for step in steps:
            for each in (step, *_FALLBACKS.get(step, ())):
                if found := next(iter(self._lines_of(each)), None):
                    return found
        return None

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
            case "next_maximum":
                return self.kept_maxima
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
                return (line for line in candidates if "/" in body(line) and not _ROOT.search(line.code))
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
                return (*self.matching(_ROOT), *self.matching(_SCALE))
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
            case "order":
                return self.out_of_order
            case "read_file":
                return list(self.matching(READ))[-1:]
            case _:
                return self.matching(WORDS[step])

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
        for line in (*loads, *self.output_sums, *self._lines_of("scores")):
            names = re.findall(r"\b([A-Za-z_]\w*)\s*\[", assigned_value(line))
            if line in loads and names and letter not in "".join(names).lower():
                return [line]  # it loads another matrix than the one for which its tile is used
            for name in names:
                if letter in name.lower():
                    sets = re.compile(rf"\*\s*(?:(?:const|__restrict__)\s+)*{name}\s*=|(?:^|;)\s*{name}\s*\+?=")
                    others = "qkv".replace(letter, "")
                    sources = (
                        rf"(?:[^,]*\+|[^,{letter}]*[{others}][^,{letter}]*,)"  # at an offset, or of another matrix
                    )
                    copies = re.compile(rf"\bcudaMemcpy\w*\s*\(\s*\w*{letter}\w*\s*,{sources}", re.IGNORECASE)
                    return [*self.matching(copies), *(s for s in self.statements if sets.search(s.code)), line]
        return []

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
    def _bounds(self) -> list[Line]:
        """Lines that compute, with a division, the number at which a loop over the keys ends."""
        ends = (re.search(r";[^;<]*<=?\s*([A-Za-z_]\w*)\s*;", loop.code) for loop in self._loops("keys"))
        sets = [re.compile(rf"\b{end[1]}\s*=[^=;]*/") for end in ends if end]
        return [line for each in sets for line in self.matching(each)]

    @property
    def _score_starts(self) -> list[Line]:
        """Lines that declare the sums of the scores, with a first value."""
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


def _holds_queries(filled: Sequence[Line]) -> bool:
    """Whether the name of the first array that is filled suggests that it holds Q."""
    said = assignment(filled[0])
    return said is not None and "q" in said[1].lower()


def _is_stored(line: Line, names: set[str]) -> bool:
    """Whether the line stores one of `names` into an array."""
    said = assignment(line)
    return said is not None and bool(said[2]) and said[3] == "=" and bool(names & set(WORD.findall(said[4])))
