"""Parses compute-sanitizer's log into a report."""

from __future__ import annotations

import re
from collections.abc import Iterator

from grader.findings import Finding
from grader.sandbox.room import Unreadable, confined
from grader.sanitizers.tool_report import Check, Report, by_place

_PREFIX = "========="
_AT = re.compile(r"(?:\bat|Device Frame:) (?P<kernel>.+?)\+0x[0-9a-f]+(?: in (?P<file>[^:]+):(?P<line>\d+))?$")
_OLD_AT = re.compile(r"\bat 0x[0-9a-f]+ in (?:(?P<file>[^:]+):(?P<line>\d+):)?(?P<kernel>.+)$")
_WHO = re.compile(r"by thread \((\d{1,10}),(\d{1,10}),(\d{1,10})\) in block \((\d{1,10}),(\d{1,10}),(\d{1,10})\)")
_SUMMARY = re.compile(
    r"ERROR SUMMARY: ([\d,]{1,15}) error|RACECHECK SUMMARY: [\d,]+ hazards? displayed \(([\d,]{1,15}) error"
)
_API = re.compile(
    r'Program hit (?P<name>\w+) \(error (?P<code>\d+)\) due to "(?P<why>.*?)" on CUDA API call to (?P<function>\w+)'
)
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
    blocks = list(_blocks(text))
    totals = [_count(said[1] or said[2]) for block in blocks if (said := _SUMMARY.search(block[0]))]
    findings = by_place(each for block in blocks if (each := _finding(check, block)))
    broken = _BROKEN.search(text)
    not_run = broken[1] if broken else "" if totals else "it ended without a summary"
    return Report(check, findings, totals[0] if totals else 0, not_run)


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
        return Finding.from_facts("call_failed", {**api.groupdict(), "code": int(api["code"])})
    if (hazard := _HAZARD.search(head)) is not None:
        return _race(hazard, rest)
    if (leak := _LEAK.search(head)) is not None:
        return Finding.from_facts("leak", {"size": _count(leak[1]), "of": "allocation", "by": "cudaMalloc"})
    frames = [_place(text) for text in rest if text.startswith(("at ", "Device Frame: "))]
    if not frames or not frames[0]:
        return None
    fields: dict[str, object] = {**next((f for f in frames if f.get("file") not in _INTRINSICS), frames[-1])}
    if (who := next((found for text in rest if (found := _WHO.search(text)) is not None), None)) is not None:
        fields |= {"thread": who.group(1, 2, 3), "block": who.group(4, 5, 6)}
    kind, facts = _what(check, head, " ".join(rest))
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
    sides = [found for text in rest if (found := _HAZARD_SIDE.search(text)) is not None][:2]
    does = [*(side[1].lower() for side in sides), *_HAZARDS.get(hazard[1], ("write", "write"))[len(sides) :]]
    places = [_place(side[5]) for side in sides]
    threads = [side.group(2, 3, 4) for side in sides]
    in_warp = len(threads) > 1 and len({(int(x) // 32, y, z) for x, y, z in threads}) == 1
    facts: dict[str, object] = {"does": does[0], "other_does": does[1], "between": "lanes" if in_warp else "warps"}
    if len(sides) > 1 and places[1].get("file"):
        here, there = ((place.get("file"), place.get("line")) for place in places)
        facts |= {"other_file": places[1]["file"], "other_line": places[1]["line"]}
        facts |= {"other_thread": f"({','.join(threads[1])})", "how": "update" if here == there else "barrier"}
    fields: dict[str, object] = {"thread": threads[0], **places[0]} if sides else {}
    kind = "race_in_warp" if in_warp else "race"
    return Finding.from_facts(kind, facts, block=hazard.group(2, 3, 4), **fields)


def _count(text: str) -> int:
    return int(text.replace(",", ""))


def _place(text: str) -> dict[str, str]:
    """The kernel, file and line of an `at …` line, as far as they are known, in the format of old and new versions of
    the tool."""
    found = _AT.search(text.strip()) or _OLD_AT.search(text.strip())
    return {name: part for name, part in found.groupdict().items() if part} if found is not None else {}
