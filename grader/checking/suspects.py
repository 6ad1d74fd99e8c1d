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

from grader.checking.source_lines import (
    ASSIGNED,
    WORD,
    Line,
    added,
    assigned_value,
    body,
    for_loops,
    is_around,
    parenthesised,
    read_lines,
)
from grader.operators.base import Step
from grader.sandbox.bounded import Bounded, Exceeded

_examiner = Bounded(wall_s=15, memory_bytes=1 << 30)
"""Regular expressions run over untrusted text, so they run under limits. The search takes milliseconds; the time limit
is this long so that the line is also found on a busy machine."""
_EXP = re.compile(r"\b(?:__)?exp2?f?\s*\(")
_EXP2 = re.compile(r"\b(?:__)?exp2f?\s*\(")
_MAX = re.compile(r"\b(?:f?max|fmaxf)\s*\(")
_MIN = re.compile(r"\b(?:f?min|fminf)\s*\(")
_WHOLE_DIVISION = re.compile(r"=\s*\(?\s*1\s*/")
"""scale = 1 / …, which is 0 in integer arithmetic"""
_MAXIMUM = re.compile(r"\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*(?:-\s*(?:INFINITY|FLT_MAX|HUGE_VALF)|(?:f?max|fmaxf)\s*\()")
_ROOT, _SCALE = re.compile(r"\br?sqrtf?\s*\("), re.compile(r"\bscale\w*\s*=", re.IGNORECASE)
_LARGER = re.compile(r"\bif\s*\([^;]*[<>][^;]*\)\s*(\w+)(?:\s*\[[^\]]*\])*\s*=\s*\w+(?:\s*\[[^\]]*\])*\s*;")
"""if (s > m) m = s;"""
_READ = re.compile(r"\b(?:fread|read\w*)\s*\(")
_BATCH = re.compile(
    r"\b(\w+)\s*=[^=;]*\bblockIdx\s*\.\s*[yz]\b|\bfor\s*\(.*?\b(\w+)\s*=[^;]*;[^;]*<\s*(?:B\b|\w*batch\w*)"
)
_BATCH_LOOP = re.compile(r"\bfor\s*\([^;]*;[^;]*<=?\s*(?:B|b|\w*batch\w*)\s*;", re.IGNORECASE)
_MEMSET = re.compile(r"\bcudaMemset\w*\s*\(")
_FUNCTION = re.compile(r"\b__(?:device|global)__\b[^()]*?\b(\w+)\s*\(")
_COPIED = re.compile(r"\b(\w+)(?:\s*\[[^\]]*\])*\s*=\s*(\w+)(?:\s*\[[^\]]*\])*\s*[,;]")
_FALLBACKS: dict[Step, tuple[Step, ...]] = {
    "scale": ("store_scores", "scores"),
    "store_scores": ("scores",),
    "tile": ("keys",),
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
        return read_lines(self.files)

    def _lines_of(self, step: Step) -> Iterable[Line]:
        match step:
            case "weight":
                return (line for line in self._exponentials if not self._is_rescale(line))
            case "rescale":
                return (line for line in self._exponentials if self._is_rescale(line))
            case "maximum":
                return self._matching(_MAX)
            case "overwritten_maximum":
                return self._overwritten_maxima
            case "total_of_one":
                return [line for line in self._totals if re.search(r"\bif\s*\([^;]*==\s*0", line.code)]
            case "reset":
                return self._launches_before_batches
            case "exponential":
                minima = (line for line in self._matching(_MIN) if self._maxima & set(WORD.findall(line.code)))
                rescaled = (line for line in self._exponentials if self._is_rescale(line))
                return (*minima, *rescaled, *self._exponentials)
            case "zero_scale":
                return self._matching(_WHOLE_DIVISION)
            case "header":
                return self._matching(_READ)
            case "next_maximum":
                return self._kept_maxima
            case "scores":
                return (line for line in self._products_of_elements if self._is_score(line))
            case "output_sum":
                return self._output_sums
            case "total":
                return self._totals
            case "keys" | "tile":
                return self._loops(step)
            case "division":
                candidates = (*self._stores, *reversed(self._statements))
                return (line for line in candidates if "/" in body(line) and not _ROOT.search(line.code))
            case "store":
                return self._stores
            case "scale":
                return (*self._matching(_ROOT), *self._matching(_SCALE))
            case "store_scores":
                first = [ASSIGNED.search(body(line)) for line in self._lines_of("scores")][:1]
                scores = {said[1] for said in first if said is not None}
                return (line for line in self._statements if _is_stored(line, scores))
            case "base_two":
                return self._odd_one_out(_EXP2)
            case "load_q" | "load_k" | "load_v":
                return self._loads(step)
            case "batch_of_q" | "batch_of_k" | "batch_of_v":
                return self._pointers(step[-1])
            case "batch":
                return self._batch_offsets
            case "batch_of_o":
                return [*self._repeated_copies_back, *self._stores]
            case "order":
                return self._out_of_order
            case "read_file":
                return list(self._matching(_READ))[-1:]
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
        return tuple(line for line in self._lines if ASSIGNED.search(body(line)) and not host.search(line.code))

    @cached_property
    def _exponentials(self) -> tuple[Line, ...]:
        return tuple(self._matching(_EXP))

    @cached_property
    def _maxima(self) -> frozenset[str]:
        """Names that hold a maximum, and names that they are copied to or from."""
        names = {found[1] for line in self._lines for found in _MAXIMUM.finditer(line.code)}
        names |= {found[1] for line in self._lines if (found := _LARGER.search(line.code))}
        copies = [
            found.groups()
            for line in self._lines
            if not _LARGER.search(line.code)
            for found in _COPIED.finditer(line.code)
            if found[2] not in self._multiplied
        ]
        for _ in range(3):
            names |= {name for pair in copies for name in pair if names & set(pair) and not name.isdigit()}
        return frozenset(names)

    @cached_property
    def _multiplied(self) -> frozenset[str]:
        """Names of sums and products, which hold scores rather than maxima."""
        found = (ASSIGNED.search(body(line)) for line in self._statements)
        return frozenset(said[1] for said in found if said and "*" in said[4] and not _MAX.search(said[4]))

    def _is_rescale(self, line: Line) -> bool:
        """Whether the line has the exponential of a difference of two maxima, exp(m_old - m_new)."""
        found = _EXP.search(line.code)
        inside = parenthesised(line.code[found.end() - 1 :]) if found else ""
        words = re.findall(r"[A-Za-z_]\w*(?=\s*(?:\[|[-+)]|$))", re.sub(r"\[[^\]]*\]", "[", inside))
        return len(words) >= 2 and set(words) <= self._maxima

    @cached_property
    def _weights(self) -> frozenset[str]:
        return frozenset(
            found[1]
            for line in self._exponentials
            if not self._is_rescale(line) and (found := ASSIGNED.search(body(line))) is not None and found[3] == "="
        )

    @cached_property
    def _sums(self) -> tuple[Line, ...]:
        """Lines that add to something."""
        return tuple(line for line in self._statements if added(line))

    @property
    def _products_of_elements(self) -> list[Line]:
        """Lines that add products of arrays' elements; without such lines, those that add any products."""
        products = [line for line in self._sums if re.search(r"\*|fma", added(line))]
        return [line for line in products if re.search(r"\[|\b[A-Z_]+\(", added(line))] or products

    def _weighs(self, line: Line) -> bool:
        value = assigned_value(line)
        return bool(self._weights & set(WORD.findall(value))) or self._has_weight(line)

    def _has_weight(self, line: Line) -> bool:
        """Whether a weight is computed in the assigned value itself."""
        return _EXP.search(assigned_value(line)) is not None and not self._is_rescale(line)

    def _is_score(self, line: Line) -> bool:
        """Whether a sum of products contains neither a weight nor a rescaling factor."""
        return not self._weighs(line) and not self._shrinking & set(WORD.findall(assigned_value(line)))

    @cached_property
    def _shrinking(self) -> frozenset[str]:
        """Names of the factors by which sums are rescaled."""
        found = (ASSIGNED.search(body(line)) for line in self._exponentials if self._is_rescale(line))
        return frozenset(said[1] for said in found if said is not None)

    @cached_property
    def _products(self) -> tuple[Line, ...]:
        """Lines that add a weight times something; without such lines, those that assign it."""
        names = "|".join(map(re.escape, sorted(self._weights))) or "(?!)"
        weight = rf"(?:\b(?:{names})\b(?:\s*\[[^\]]*\])*)"
        fused = rf"\bfmaf?\s*\([^,]*(?:,[^,]*)?{weight}"
        near = re.compile(rf"{weight}\s*\)?\s*\*|\*\s*\(?\s*{weight}|{fused}")
        added_up = tuple(
            line
            for line in self._sums
            if near.search(assigned_value(line))
            or (self._has_weight(line) and "*" in _EXP.split(assigned_value(line))[-1].partition(")")[2])
        )
        assigned = (line for line in self._statements if "[" in assigned_value(line) and line not in self._exponentials)
        return added_up or tuple(line for line in assigned if near.search(assigned_value(line)))

    def _merges(self, sums: Sequence[Line], candidates: Iterable[Line]) -> list[Line]:
        """The `candidates` that use what `sums` add up."""
        parts = {said[1] for line in sums if (said := ASSIGNED.search(body(line)))}
        return [
            line
            for line in candidates
            if line not in sums
            and (said := ASSIGNED.search(body(line)))
            and said[1] not in parts
            and parts & set(WORD.findall(said[4]))
        ]

    @property
    def _output_sums(self) -> list[Line]:
        """Lines that sum up O: first those that merge a tile's sum into it, then the sums themselves. A program that
        keeps the weights in global memory has a second sum of products in place of these."""
        if not self._products:
            return [line for line in self._products_of_elements if not self._weighs(line)][1:]
        merged = self._merges(self._products, self._sums) or self._merges(self._products, self._plain_statements)
        return [*merged, *self._products]

    @property
    def _plain_statements(self) -> list[Line]:
        """Lines that assign a single value, other than results and quotients, the last first."""
        others = re.compile(r",\s*\w+\s*=|/")
        return [
            line for line in reversed(self._statements) if line not in self._stores and not others.search(line.code)
        ]

    @property
    def _totals(self) -> list[Line]:
        """Lines that sum up l, the weights' sum: first those that merge a tile's sum, then the sums themselves."""
        plain = [line for line in self._sums if self._weighs(line) and line not in self._products]
        merged = self._merges(plain, self._sums) or self._merges(plain, self._plain_statements)
        return [*merged, *plain]

    @property
    def _kept_maxima(self) -> list[Line]:
        """Lines that set a running maximum to another number, `m = m_new;`, the last first."""
        found = []
        for line in self._statements:
            said = re.match(r"\s*(\w+)(?:\s*\[[^\]]*\])*\s*=\s*\w+(?:\s*\[[^\]]*\])*\s*;", line.code)
            if said and said[1] in self._maxima:
                found.append(line)
        return found[::-1]

    @property
    def _overwritten_maxima(self) -> list[Line]:
        """Lines that set a running maximum to the new one before exp(m_old - m_new) uses the old one."""
        found = []
        for line in reversed(self._kept_maxima):
            said = _COPIED.search(line.code)
            later = (each for each in self._exponentials if self._is_rescale(each) and each.file == line.file)
            after = next((each for each in later if each.number > line.number), None)
            loops = [last for loop, last in self._for_loops if is_around(loop, last, line)]
            if (
                said
                and after
                and after.number <= min(loops, default=0)
                and set(said.groups()) <= set(WORD.findall(after.code))
            ):
                found.append(line)
        return found

    @cached_property
    def _stores(self) -> list[Line]:
        """Lines that write to an array that is a parameter of a kernel, the last first, because results are written
        last."""
        heads = re.findall(r"__global__[^;{]*\(([^;{]*)\)\s*\{", "\n".join(line.code for line in self._lines))
        given = {
            word[-1]
            for head in heads
            for parameter in head.split(",")
            if "*" in parameter and "const" not in parameter.partition("*")[0] and (word := WORD.findall(parameter))
        }
        for pointer, array in re.findall(
            r"\*\s*(?:const\s+)?(\w+)\s*=\s*(\w+)\s*\+", "\n".join(s.code for s in self._lines)
        ):
            given |= {pointer} if array in given else set()
        found = [(line, ASSIGNED.search(body(line))) for line in self._statements]
        return [line for line, said in reversed(found) if said and said[1] in given and said[2]]

    def _loads(self, step: Step) -> list[Line]:
        """Lines that load a tile of Q, K or V into an array from which the scores or O are computed."""
        sums = list(self._lines_of("output_sum" if step == "load_v" else "scores"))
        used = {word for line in (*sums, *self._products)[:2] for word in WORD.findall(assigned_value(line))}
        if step == "load_v":
            used = {word for line in self._products for word in WORD.findall(assigned_value(line))} - self._weights
        loads = [(line, ASSIGNED.search(body(line))) for line in self._statements if not added(line)]
        filled = [line for line, said in loads if said and said[2] and said[1] in used and re.search(r"[\[(]", said[4])]
        queries = [line for line in filled[:1] if len(filled) > 1 and _holds_queries(filled)]
        return queries if step == "load_q" else [line for line in filled if line not in queries]

    # ---- where matrices begin ---------------------------------------------------------------------------------------

    def _pointers(self, letter: str) -> list[Line]:
        """The line that sets the pointer to Q, K or V (by its `letter`), or the one that reads the matrix."""
        loads = self._loads("load_v" if letter == "v" else "load_k" if letter == "k" else "load_q")
        for line in (*loads, *self._output_sums, *self._lines_of("scores")):
            names = re.findall(r"\b([A-Za-z_]\w*)\s*\[", assigned_value(line))
            if line in loads and names and letter not in "".join(names).lower():
                return [line]  # it loads another matrix than the one that its tile is used as
            for name in names:
                if letter in name.lower():
                    sets = re.compile(rf"\*\s*(?:(?:const|__restrict__)\s+)*{name}\s*=|(?:^|;)\s*{name}\s*\+?=")
                    others = "qkv".replace(letter, "")
                    sources = (
                        rf"(?:[^,]*\+|[^,{letter}]*[{others}][^,{letter}]*,)"  # at an offset, or of another matrix
                    )
                    copies = re.compile(rf"\bcudaMemcpy\w*\s*\(\s*\w*{letter}\w*\s*,{sources}", re.IGNORECASE)
                    return [*self._matching(copies), *(s for s in self._statements if sets.search(s.code)), line]
        return []

    @property
    def _batch_offsets(self) -> list[Line]:
        """Lines that multiply the batch's number, then those that set it."""
        names = {
            name
            for line in self._matching(_BATCH)
            if "blockDim" not in line.code
            for found in _BATCH.finditer(line.code)
            for name in found.groups()
            if name
        }
        number = "|".join([r"\bblockIdx\s*\.\s*[yz]\b", *(rf"\b{re.escape(name)}\b" for name in names)])
        offsets = [line for line in self._statements if "blockDim" not in line.code]
        product = re.compile(rf"=.*(?:(?:{number})\s*\)?\s*\*|\*\s*\(?(?:{number}))")
        numbers = [line for line in self._matching(_BATCH) if "blockDim" not in line.code]
        return [*(line for line in offsets if product.search(line.code)), *numbers]

    @property
    def _repeated_copies_back(self) -> list[Line]:
        """Copies to the host in a loop, all of them to the same address."""
        one_place = re.compile(r"\bcudaMemcpy\w*\s*\(\s*\w+\s*,.*cudaMemcpyDeviceToHost")
        return [
            line
            for line in self._matching(one_place)
            if any(is_around(loop, last, line) for loop, last in self._for_loops)
        ]

    @property
    def _out_of_order(self) -> list[Line]:
        """The first line that reads one of Q, K and V out of this order."""
        order = []
        for line in self._matching(_READ):
            target = re.search(r"\(\s*(?:\([^()]*\)\s*)?&?(\w+)", line.code[line.code.index("read") :])
            letters = [each for each in "qkv" if target and each in target[1].lower()]
            if len(letters) == 1:
                order.append((letters[0], line))
        return [line for (letter, line), right in zip(order, "qkv", strict=False) if letter != right][:1]

    # ---- loops ------------------------------------------------------------------------------------------------------

    def _loops(self, step: Step) -> list[Line]:
        """Loops around the weights, the outermost first for `keys`, the innermost for `tile`."""
        weight = next(iter(self._lines_of("weight")), None)
        inside = weight if step == "tile" else next(iter(self._products), weight)
        if inside is None:
            return []
        inside = self._use_of_function_around(inside)
        around = [(line, last) for line, last in self._for_loops if is_around(line, last, inside)]
        scores = next(iter(self._lines_of("scores")), None)
        both = [line for line, last in around if scores is not None and is_around(line, last, scores)]
        all_around = [line for line, _ in around]
        if step == "keys":
            return both or self._loops_around_launches or all_around
        return all_around[::-1]

    def _use_of_function_around(self, inside: Line) -> Line:
        """The first call of the __device__ function that `inside` is in; `inside` itself if it is in a kernel."""
        heads = [
            line for line in self._matching(_FUNCTION) if line.file == inside.file and line.number <= inside.number
        ]
        name = _FUNCTION.search(heads[-1].code) if heads else None
        if name is None or "__global__" in heads[-1].code:
            return inside
        call = re.compile(rf"\b{name[1]}\s*(?:<[^<>()]*>)?\s*\(")
        calls = (line for line in self._matching(call) if not _FUNCTION.search(line.code))
        return next((line for line in calls if any(is_around(*loop, line) for loop in self._for_loops)), inside)

    @property
    def _launches_before_batches(self) -> list[Line]:
        """Launches and cudaMemset calls before a host loop over the batches that launches a kernel too."""
        launches = list(self._matching(_WORDS["launch"]))
        batches = [
            loop
            for loop, last in self._for_loops
            if _BATCH_LOOP.search(loop.code) and any(is_around(loop, last, line) for line in launches)
        ]
        sets = [*launches, *self._matching(_MEMSET)]
        for loop in batches[:1]:
            ends = (line.number for line in self._lines if line.file == loop.file and line.code.startswith("}"))
            begin = max((end for end in ends if end < loop.number), default=0)  # of the function around the loop
            return [line for line in sets if line.file == loop.file and begin < line.number < loop.number]
        return []

    @property
    def _loops_around_launches(self) -> list[Line]:
        """Host loops that launch a kernel each time, other than those over batches."""
        launches = list(self._matching(_WORDS["launch"]))
        return [
            loop
            for loop, last in self._for_loops
            if not _BATCH.search(loop.code) and any(is_around(loop, last, line) for line in launches)
        ]

    @cached_property
    def _for_loops(self) -> list[tuple[Line, int]]:
        return for_loops(self._lines)


_WORDS: dict[str, re.Pattern[str]] = {
    "row": re.compile(r"=[^=;]*\bblockIdx\s*\.\s*x\b"),
    "launch": re.compile(r"<<<"),
    "shuffle": re.compile(r"\b__shfl\w*\s*\("),
    "copy_back": re.compile(r"\bcudaMemcpyDeviceToHost\b"),
    "write": re.compile(r"\bfwrite\s*\(|\.write\s*\("),
    "read": re.compile(r"\bcudaMemcpyHostToDevice\b"),
}


def _holds_queries(filled: Sequence[Line]) -> bool:
    """Whether the name of the first array that is filled suggests that it holds Q."""
    said = ASSIGNED.search(body(filled[0]))
    return said is not None and "q" in said[1].lower()


def _is_stored(line: Line, names: set[str]) -> bool:
    """Whether the line stores one of `names` into an array."""
    said = ASSIGNED.search(body(line))
    return said is not None and bool(said[2]) and said[3] == "=" and bool(names & set(WORD.findall(said[4])))
