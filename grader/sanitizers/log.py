"""Parses compute-sanitizer's log into a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from grader.programs.trace import Diagnostic
from grader.programs.trace.events import Dim3
from grader.sanitizers.findings import Check, Report, counted

_PREFIX = "========="
_AT = re.compile(r"(?:\bat|Device Frame:) (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>[^:]+):(?P<line>\d+))?$")
_OLD_AT = re.compile(r"\bat 0x[0-9a-f]+ in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<kernel>.+)$")
_WHO = re.compile(r"by thread \((\d{1,10}),(\d{1,10}),(\d{1,10})\) in block \((\d{1,10}),(\d{1,10}),(\d{1,10})\)")
_SUMMARY = re.compile(
    r"ERROR SUMMARY: ([\d,]{1,15}) error|RACECHECK SUMMARY: [\d,]+ hazards? displayed \(([\d,]{1,15}) error"
)
_API = re.compile(r'Program hit (\w+) \(error (\d+)\) due to "(.*?)" on CUDA API call to (\w+)')
_HAZARD = re.compile(
    r"Potential (\w+) hazard detected at __shared__ 0x[0-9a-f]+ in block \((\d{1,10}),(\d{1,10}),(\d{1,10})\)"
)
_HAZARD_SIDE = re.compile(r"(Read|Write) Thread \((\d{1,10}),(\d{1,10}),(\d{1,10})\) (at .+)$")
_INTRINSICS = frozenset({"sm_30_intrinsics.hpp", "sm_20_intrinsics.hpp", "device_functions.hpp"})
"""Headers of the toolkit whose functions are inlined into kernels: the line at fault is the one that calls such a
function."""
_LEAK = re.compile(r"Leaked ([\d,]+) bytes at 0x[0-9a-f]+")
_NEAREST = re.compile(r"is ([\d,]+) bytes (\w+) the nearest allocation at 0x[0-9a-f]+ of size ([\d,]+) bytes")
_BROKEN = re.compile(
    r"(terminated before first instrumented API call|Device not supported|Internal Sanitizer Error.*"
    r"|Unable to find injection library.*|No attachable process found|was stopped after [\d.]+ s)"
)

_ADVICE = {
    "Invalid __global__": "Compare the index with the allocation's size: the last block is the usual suspect.",
    "Invalid __shared__": "Compare the index with the shared array's size, including the launch's dynamic size.",
    "Invalid __local__": "An index into one of the thread's local arrays is too large.",
    "misaligned": "A float4 or float2 access needs an address that is a multiple of its size.",
    "leak": "Free what you allocate: a program that runs longer would run out of memory.",
    "hazard": "Put __syncthreads() (or __syncwarp() within a warp) between the two accesses.",
    "Uninitialized": "Write the memory before it is read, in a kernel or with cudaMemset.",
    "Barrier error.*[Ii]nvalid arg": "Every thread that calls a warp function must be in its mask.",
    "Barrier error|[Dd]ivergent": "Move the barrier out of the branch, so that all threads reach it.",
}
"""Advice for messages that match a pattern; the first match counts."""


def parse_report(check: Check, text: str) -> Report:
    """Parse a tool's log into a report."""
    summary = None
    diagnostics = []
    for block in _blocks(text):
        if (found := _SUMMARY.search(block[0])) is not None:
            summary = summary if summary is not None else int((found.group(1) or found.group(2)).replace(",", ""))
            continue
        if (diagnostic := _diagnostic(check, block)) is not None:
            diagnostics.append(diagnostic)
    findings = counted(diagnostics, r"\(?\d[\d,]*\)?")
    if (broken := _BROKEN.search(text)) is not None:
        return Report(check, findings, summary or 0, not_run=broken.group(1))
    if summary is None:
        return Report(check, findings, 0, not_run="it ended without a summary")
    return Report(check, findings, summary)


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines that have the tool's prefix, in blocks and without the prefix. An empty or unindented line begins
    a new block."""
    block: list[str] = []
    for line in text.splitlines():
        if not line.startswith(_PREFIX):
            continue
        content = line[len(_PREFIX) :]
        if block and not content.startswith("     "):
            yield block
            block = []
        if content.strip():
            block.append(content.strip())
    if block:
        yield block


def _diagnostic(check: Check, block: list[str]) -> Diagnostic | None:
    head, rest = block[0], block[1:]
    if (api := _API.search(head)) is not None:
        name, code, why, function = api.groups()
        return Diagnostic("error", "api", f"{function} failed with {name} (error {code}): {why}.")
    if (hazard := _HAZARD.search(head)) is not None:
        return _race(hazard, rest)
    if (leak := _LEAK.search(head)) is not None:
        return Diagnostic("note", "memory", f"leak: {leak.group(1)} bytes were never freed", advice=_advice("leak"))
    frames = [_place(text) for text in rest if text.startswith(("at ", "Device Frame: "))]
    if not frames or frames[0][0] is None:
        return None
    kernel, file, line = next((f for f in frames if f[1] not in _INTRINSICS), frames[-1])
    who = next((found for text in rest if (found := _WHO.search(text)) is not None), None)
    numbers = [int(number) for number in who.groups()] if who else []
    more = _relation(" ".join(rest[1:]))
    message = head.removeprefix("Error: ").removeprefix("Warning: ") + (f", {more}" if more else "")
    return Diagnostic(
        severity="error",
        tool=check,
        message=" ".join(message.split()),
        kernel=kernel,
        thread=_dim(numbers[:3]),
        block=_dim(numbers[3:]),
        file=file,
        line=line,
        advice=_advice(" ".join(block)),
    )


def _relation(text: str) -> str:
    """The tool's description of an address, without the address itself, which tells a student nothing."""
    if (near := _NEAREST.search(text)) is not None:
        return f"{near.group(1)} bytes {near.group(2)} the nearest allocation (of {near.group(3)} bytes)"
    return "misaligned" if "misaligned" in text else ""


def _race(hazard: re.Match[str], rest: list[str]) -> Diagnostic:
    sides = [found for text in rest if (found := _HAZARD_SIDE.search(text)) is not None]
    places = [_place(side.group(5)) for side in sides]
    kernel, file, line = places[0] if places else (None, None, None)
    words = []
    for side, (_, where, number) in zip(sides, places, strict=True):
        spot = f" ({where}:{number})" if where else ""
        words.append(f"thread ({','.join(side.group(2, 3, 4))}) {side.group(1).lower()}s{spot}")
    name = {"RAW": "read after write", "WAR": "write after read", "WAW": "write after write"}.get(hazard.group(1), "")
    return Diagnostic(
        severity="error",
        tool="race",
        message=f"Potential {hazard.group(1)} hazard ({name}) in shared memory: {' and '.join(words)}",
        kernel=kernel,
        block=_dim([int(number) for number in hazard.group(2, 3, 4)]),
        thread=_dim([int(number) for number in sides[0].group(2, 3, 4)]) if sides else None,
        file=file,
        line=line,
        advice=_advice("hazard"),
    )


def _place(text: str) -> tuple[str | None, str | None, int | None]:
    """Return (kernel, file, line) of an `at …` line, in the format of old and new versions of the tool."""
    for pattern in (_AT, _OLD_AT):
        if (found := pattern.search(text.strip())) is not None:
            line = found.group("line")
            return found.group("kernel"), found.group("file"), int(line) if line else None
    return None, None, None


def _dim(numbers: Sequence[int]) -> Dim3 | None:
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _advice(text: str) -> str | None:
    return next((advice for pattern, advice in _ADVICE.items() if re.search(pattern, text)), None)
