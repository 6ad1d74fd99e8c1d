"""Finds slips of the host: dimensions read in another order, copies before the launch, sizes that are not in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.checking.host_text import READ
from grader.checking.source_lines import WORD, Line, parenthesised
from grader.checking.suspects import ROOT, Slip, Suspects

_SIZED = re.compile(r"\b(cudaMalloc\w*|cudaMemcpy(?:Async)?|cudaMemset(?:Async)?|malloc)\s*(?=\()")
_IN_BYTES = re.compile(r"sizeof|\b(?:4|8|12|16)[uUlL]*\s*\*|\*\s*(?:4|8|12|16)\b")
_TYPES = {"size_t", "int", "long", "unsigned", "float", "sizeof", "std", "int32_t", "int64_t", "uint32_t"}
_COPY_BACK = re.compile(r"\bcudaMemcpyDeviceToHost\b")
_ONE_READ = re.compile(r"\(\s*(?:\w+\s*,\s*)?(?:\([^()]*\)\s*)?&\s*(\w+)\b")
_ONE_OF = re.compile(r"\b(\w+)\s*=\s*\w+\s*\[\s*([0-9])\s*\]\s*[,;]")


class HostSlips(Suspects):
    """Finds slips of the host."""

    def _header_order(self) -> Iterator[Slip]:
        """The dimension d, which is under a square root, if it is not read as the last number of the header."""
        roots = {
            name for line in self.matching(ROOT) for name in WORD.findall(ROOT.split(line.code)[-1].partition(";")[0])
        }
        reads = [(line, found[1]) for line in self.matching(READ) if (found := _ONE_READ.search(line.code))]
        places = [(line, name, place) for place, (line, name) in enumerate(reads)] if len(reads) == 3 else []
        places += [(line, name, int(at)) for line in self.lines for name, at in _ONE_OF.findall(line.code)]
        if {place for _, _, place in places} == {0, 1, 2}:
            for line, name, place in places:
                if name in roots and place != 2 and re.match(r"(?:h(?:ead)?_?)?d", name, re.IGNORECASE):
                    yield Slip(
                        f"The header is B, N, d: `{name}` is its third number, and is read as number {place + 1}.", line
                    )

    def _early_copies(self) -> Iterator[Slip]:
        """Copies of results to the host in functions that launch kernels only later."""
        launching = {name for line in self.matching(re.compile("<<<")) if (name := self._function_around(line))}
        calls = "|".join(rf"\b{re.escape(name)}\s*\(" for name in sorted(launching - {"main"}))
        launch = re.compile(f"<<<|{calls}" if calls else "<<<")
        for copy in self.matching(_COPY_BACK):
            begin, end = self.extent(copy)
            here = [line for line in self.lines if line.file == copy.file and begin < line.number <= end]
            launches = [line.number for line in here if launch.search(line.code) and line.code[:1].isspace()]
            copies = [line.number for line in here if _COPY_BACK.search(line.code)]
            if launches and max(copies) < min(launches):
                yield Slip(
                    f"The results are copied to the host before the kernel is launched (line {launches[0]}): copy them "
                    "after the launch.",
                    copy,
                )

    def _function_around(self, line: Line) -> str:
        begin, _ = self.extent(line)
        head = " ".join(
            each.code for each in self.lines if each.file == line.file and begin < each.number <= line.number
        )
        found = re.findall(r"\b([A-Za-z_]\w*)\s*\([^(){};]*\)\s*\{", head)
        return next((name for name in found if name not in ("if", "for", "while", "switch")), "")

    def _sizes_in_values(self) -> Iterator[Slip]:
        """Products without sizeof where a size in bytes belongs, in programs that have sizeof elsewhere."""
        found = [(line, call, size) for line in self.lines for call, size in _sizes(line)]
        known = [(line, call, *self._resolved(size, line)) for line, call, size in found]
        if not any(_IN_BYTES.search(text) for _, _, text, _ in known):
            return
        for line, call, text, made in known:
            if "*" in text and not _IN_BYTES.search(text):
                at = made if made is not None and "byte" in made.code.lower() else line
                yield Slip(f"{call} takes a size in bytes, but this one counts values: multiply by sizeof(float).", at)

    def _resolved(self, size: str, use: Line, depth: int = 3) -> tuple[str, Line | None]:
        """`size` with the values of its variables, and the line that sets the first of them. Variables without a value,
        such as parameters, count as bytes unless they are of type int or have names as short as N."""
        made: Line | None = None
        text = size
        for name in dict.fromkeys(WORD.findall(size)):
            if name in _TYPES:
                continue
            sets = [
                line
                for line in self.lines
                if line.file == use.file and line.number < use.number and re.search(rf"\b{name}\s*=[^=]", line.code)
            ]
            if sets and depth:
                value = re.split(rf"\b{name}\s*=", sets[-1].code)[-1].partition(";")[0]
                made = made or sets[-1]
                text += f" {self._resolved(value, sets[-1], depth - 1)[0] if name not in value else value}"
            elif len(name) > 2 and not any(
                re.search(rf"\bint(?:32_t)?\s[^;(){{]*\b{name}\b", x.code) for x in self.lines
            ):
                text += " sizeof"
        return text, made


def _sizes(line: Line) -> Iterator[tuple[str, str]]:
    """The calls of a line that take a size in bytes, each with this argument."""
    for found in _SIZED.finditer(line.code):
        call, arguments = found[1], _arguments(parenthesised(line.code[found.end() :]))
        place = 0 if call == "malloc" else 1 if call.startswith("cudaMalloc") else 2
        if call not in ("cudaMallocPitch", "cudaMalloc3D", "cudaMallocArray") and place < len(arguments):
            yield call, arguments[place]


def _arguments(text: str) -> list[str]:
    found, depth = [""], 0
    for character in text:
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return found
