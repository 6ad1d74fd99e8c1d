"""Finds the host's part in a program: launches, copies, reads and writes of files, and the loops around them."""

from __future__ import annotations

import re

from grader.checking.kernel_text import KernelText
from grader.checking.source_lines import WORD, Line, assigned_value, assignment, is_around

READ = re.compile(r"\b(?:fread|read\w*)\s*\(")
BATCH = re.compile(
    r"\b(\w+)\s*=[^=;]*\bblockIdx\s*\.\s*[yz]\b|\bfor\s*\(.*?\b(\w+)\s*=[^;]*;[^;]*<\s*(?:B\b|\w*batch\w*)"
)
_BATCH_LOOP = re.compile(r"\bfor\s*\([^;]*;[^;]*<=?\s*(?:B|b|\w*batch\w*)\s*;", re.IGNORECASE)
_MEMSET = re.compile(r"\bcudaMemset\w*\s*\(")
_INSTANCE = re.compile(r"\b\w+\s*<\s*(\d+)\b[^<>]*>\s*<<<")
WORDS: dict[str, re.Pattern[str]] = {
    "row": re.compile(r"=[^=;]*\bblockIdx\s*\.\s*x\b"),
    "launch": re.compile(r"<<<"),
    "shuffle_down": re.compile(r"\b__shfl_down\w*\s*\("),
    "shuffle": re.compile(r"\b__shfl\w*\s*\("),
    "copy_back": re.compile(r"\bcudaMemcpyDeviceToHost\b"),
    "write": re.compile(r"\bfwrite\s*\(|\.write\s*\("),
    "read": re.compile(r"\bcudaMemcpyHostToDevice\b"),
}


class HostText(KernelText):
    """The source of a submission, with what its host code does."""

    def launch_for_another(self, wanted: str, other: str) -> Line | None:
        """The launch of a kernel<other> just after a test for `wanted`, as in `if (d == 64) kernel<32><<<…>>>(…);`.
        None if no kernel<other> is launched like this, or if a kernel<wanted> is launched anywhere."""
        launches = [(line, found[1]) for line in self.lines if (found := _INSTANCE.search(line.code))]
        if any(number == wanted for _, number in launches):
            return None
        others = [line for line, number in launches if number == other]
        asked = re.compile(rf"(?:==\s*|\bcase\s+){wanted}\b")
        near = (line for line in others if any(asked.search(each.code) for each in self._just_before(line)))
        return next(near, None)

    def _just_before(self, line: Line) -> list[Line]:
        return [each for each in self.lines if each.file == line.file and 0 <= line.number - each.number <= 3]

    @property
    def repeated_copies_back(self) -> list[Line]:
        """Copies to the host in a loop, all of them to the same address."""
        one_place = re.compile(r"\bcudaMemcpy\w*\s*\(\s*\w+\s*,.*cudaMemcpyDeviceToHost")
        return [
            line for line in self.matching(one_place) if any(is_around(loop, last, line) for loop, last in self.loops)
        ]

    @property
    def out_of_order(self) -> list[Line]:
        """The first line that breaks the order Q, K, V of reading the matrices, in one list or line after line."""
        order = []
        for line in self.lines:
            words = [
                word
                for word in WORD.findall(line.code.partition("}")[0])
                if len(re.findall("[qkv]", word.lower())) == 1
            ]
            letters = [each for word in words if len(word) < 6 for each in word.lower() if each in "qkv"]
            if ("{" in line.code or "<<<" in line.code) and sorted(letters) == sorted("qkv") and letters != list("qkv"):
                return [line]
        for line in self.matching(READ):
            target = re.search(r"\(\s*(?:\([^()]*\)\s*)?&?(\w+)", line.code[line.code.index("read") :])
            letters = [each for each in "qkv" if target and each in target[1].lower()]
            if len(letters) == 1:
                order.append((letters[0], line))
        return [line for (letter, line), right in zip(order, "qkv", strict=False) if letter != right][:1]

    @property
    def written_counts(self) -> list[Line]:
        """The copies, such as `count = CHUNK;`, through which the size of a write to the file gets its value, the first
        copy first."""
        found = []
        for write in self.matching(WORDS["write"]):
            for name in WORD.findall(write.code):
                while sets := [line for line in self.lines if (said := assignment(line)) and said[1] == name]:
                    copied = [re.fullmatch(r"\s*([A-Za-z_]\w*)\s*;\s*", assigned_value(line)) for line in sets]
                    source = next((each[1] for each in copied if each), "")
                    if not source or source == name or any(line in found for line in sets):
                        break
                    found += sets[-1:]
                    name = source
        return found[::-1]

    @property
    def grids(self) -> list[Line]:
        """Lines that set the grid of a launch."""
        names = [grid[1] for line in self.matching(WORDS["launch"]) if (grid := re.search(r"<<<\s*(\w+)", line.code))]
        return [
            line
            for name in names
            for line in self.matching(re.compile(rf"\b{name}\s*[=({{]"))
            if "<<<" not in line.code
        ]

    @property
    def launches_before_batches(self) -> list[Line]:
        """Launches and cudaMemset calls before a host loop over the batches that launches a kernel too."""
        launches = list(self.matching(WORDS["launch"]))
        batches = [
            loop
            for loop, last in self.loops
            if _BATCH_LOOP.search(loop.code) and any(is_around(loop, last, line) for line in launches)
        ]
        sets = [*launches, *self.matching(_MEMSET)]
        for loop in batches[:1]:
            ends = (line.number for line in self.lines if line.file == loop.file and line.code.startswith("}"))
            begin = max((end for end in ends if end < loop.number), default=0)  # of the function around the loop
            return [line for line in sets if line.file == loop.file and begin < line.number < loop.number]
        return []

    @property
    def loops_around_launches(self) -> list[Line]:
        """Host loops that launch a kernel each time, other than those over batches."""
        launches = list(self.matching(WORDS["launch"]))
        return [
            loop
            for loop, last in self.loops
            if not BATCH.search(loop.code) and any(is_around(loop, last, line) for line in launches)
        ]
