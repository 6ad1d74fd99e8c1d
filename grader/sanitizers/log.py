"""Parses compute-sanitizer's log into a report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from grader.findings import Dim3, Finding
from grader.sandbox.room import Unreadable, confined
from grader.sanitizers.tool_report import Check, Report, counted

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

_ACCESS = re.compile(r"Invalid __(global|shared|local)__ (read|write|atomic)\w* of size (\d+)", re.IGNORECASE)
_UNINITIALISED = re.compile(r"Uninitialized __\w+__ memory read of size (\d+)")
_MASK = re.compile(r"Barrier error.*[Ii]nvalid arg")
_WAITS = re.compile(r"Barrier error|[Dd]ivergent")
_HAZARDS = {"RAW": ("read", "write"), "WAR": ("write", "read"), "WAW": ("write", "write")}
"""What the two sides of a hazard do, the later one first."""


def parse_report(check: Check, text: str) -> Report:
    """Parse a tool's log, which quotes a program's names, into a report."""
    try:
        return _parsed(check, text)
    except Unreadable as unreadable:
        return Report(check, not_run=f"its log cannot be read: it {unreadable}")


@confined(answer_bytes=16 << 20)
def _parsed(check: Check, text: str) -> Report:
    summary = None
    found: list[Finding] = []
    for block in _blocks(text):
        if (said := _SUMMARY.search(block[0])) is not None:
            summary = summary if summary is not None else int((said.group(1) or said.group(2)).replace(",", ""))
            continue
        if (each := _finding(check, block)) is not None:
            found.append(each)
    findings = counted(found)
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


def _finding(check: Check, block: list[str]) -> Finding | None:
    head, rest = block[0], block[1:]
    if (api := _API.search(head)) is not None:
        name, code, why, function = api.groups()
        words = {"function": function, "name": name, "why": why}
        return Finding(kind="call_failed", words=words, values={"code": int(code)})
    if (hazard := _HAZARD.search(head)) is not None:
        return _race(hazard, rest)
    if (leak := _LEAK.search(head)) is not None:
        return Finding(
            kind="leak", values={"size": _count(leak.group(1))}, words={"of": "allocation", "by": "cudaMalloc"}
        )
    frames = [_place(text) for text in rest if text.startswith(("at ", "Device Frame: "))]
    if not frames or frames[0][0] is None:
        return None
    kernel, file, line = next((f for f in frames if f[1] not in _INTRINSICS), frames[-1])
    who = next((found for text in rest if (found := _WHO.search(text)) is not None), None)
    numbers = [int(number) for number in who.groups()] if who else []
    kind, facts = _what(check, head, " ".join(rest))
    fields = {"kernel": kernel, "file": file, "line": line, "thread": _dim(numbers[:3]), "block": _dim(numbers[3:])}
    return Finding.from_facts(kind, facts, **fields)


def _what(check: Check, head: str, rest: str) -> tuple[str, dict[str, object]]:
    """The kind of a fault and its facts. The address is left out: it tells a student nothing."""
    if (access := _ACCESS.search(head)) is not None:
        space, did, bytes = access.group(1).lower(), access.group(2).lower(), int(access.group(3))
        facts: dict[str, object] = {"did": "update" if did == "atomic" else did, "bytes": bytes, "space": space}
        if "misaligned" in rest:
            return "misaligned", facts
        if (near := _NEAREST.search(rest)) is None:
            return "invalid_access", facts
        size = {"size": _count(near.group(3)), "of": "allocation", "by": "the nearest allocation"}
        if near.group(2) == "before":
            return "before_start", {**facts, **size, "relation": "before", "before": _count(near.group(1))}
        past = _count(near.group(1)) - 1  # the tool counts the first byte past the end as 1
        relation = {"relation": "past", "past": past} if past else {"relation": "just_past"}
        return "past_the_end", {**facts, **size, **relation}
    if (read := _UNINITIALISED.search(head)) is not None:
        return "uninitialised_read", {"bytes": int(read.group(1))}
    if check == "sync" and _MASK.search(f"{head} {rest}"):
        return "mask_wrong_argument", {}
    if _WAITS.search(f"{head} {rest}"):
        return "barrier_in_branch", {"some": "threads"}
    return "tool_found", {"what": " ".join(head.removeprefix("Error: ").removeprefix("Warning: ").split())}


def _race(hazard: re.Match[str], rest: list[str]) -> Finding:
    """A hazard of racecheck: two threads of a block, and what each does where."""
    sides = [found for text in rest if (found := _HAZARD_SIDE.search(text)) is not None]
    places = [_place(side.group(5)) for side in sides]
    kernel, file, line = places[0] if places else (None, None, None)
    does, other = _HAZARDS.get(hazard.group(1), ("write", "write"))
    threads = [tuple(int(number) for number in side.group(2, 3, 4)) for side in sides]
    between = "lanes" if len(threads) > 1 and len({_warp(thread) for thread in threads}) == 1 else "warps"
    facts: dict[str, object] = {"does": sides[0].group(1).lower() if sides else does, "between": between}
    facts["other_does"] = sides[1].group(1).lower() if len(sides) > 1 else other
    if len(sides) > 1 and places[1][1]:
        facts |= {"other_file": places[1][1], "other_line": places[1][2], "how": "barrier"}
        facts["other_thread"] = f"({','.join(sides[1].group(2, 3, 4))})"
        facts["how"] = "update" if places[1][1:] == places[0][1:] else "barrier"
    block = _dim([int(number) for number in hazard.group(2, 3, 4)])
    thread = _dim([int(number) for number in sides[0].group(2, 3, 4)]) if sides else None
    kind = "race_in_warp" if between == "lanes" else "race"
    return Finding.from_facts(kind, facts, kernel=kernel, file=file, line=line, block=block, thread=thread)


def _warp(thread: tuple[int, ...]) -> tuple[int, ...]:
    """The warp of a thread of a block with one dimension; for others each row counts as warps of its own."""
    return (thread[0] // 32, *thread[1:])


def _count(text: str) -> int:
    return int(text.replace(",", ""))


def _place(text: str) -> tuple[str | None, str | None, int | None]:
    """Return (kernel, file, line) of an `at …` line, in the format of old and new versions of the tool."""
    for pattern in (_AT, _OLD_AT):
        if (found := pattern.search(text.strip())) is not None:
            line = found.group("line")
            return found.group("kernel"), found.group("file"), int(line) if line else None
    return None, None, None


def _dim(numbers: Sequence[int]) -> Dim3 | None:
    return (numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None
