"""Advice from a kernel's counters: sentences with the source line, its stride and a remedy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import prod

from grader.programs.trace import AccessEvent, BranchEvent, KernelEvent, Trace

_BANKS = 32
_WORD_BYTES = 4
_SECTOR_BYTES = 32
_LEAST_SHARE = 0.05
"""A line with a smaller share of a kernel's excess wavefronts, sectors or divergent branches gets no sentence."""
_POOR = 1.1
"""A line gets a sentence if it takes at least this multiple of the wavefronts or sectors that its accesses need."""
_MOST_LINES = 3
_LEAST_EFFICIENCY = 0.9
"""If at least this share of a warp's lanes works on average, divergent branches cost little and get no sentence."""
_LEAST_LOADS = 4
"""Kernels with fewer bulk copies per block get no advice to overlap copies with work."""
_SAME_ADDRESS = 4
"""An atomic gets a sentence if on average at least this many lanes of a warp wait for others."""

Named = Callable[[str], str]
"""Returns the name by which the student knows a source file."""


Gains = Mapping[tuple[str, int], float]
"""(file as the student knows it, line) → the share (0..1) of the program's time that mending it would save, by
prediction."""


def advice(trace: Trace, kernel: str, named: Named, gains: Gains | None = None) -> tuple[str, ...]:
    """Sentences about one kernel, the costliest problem first; none if there is no problem or nothing was counted. With
    predicted `gains`, accesses at other lines get no sentence, and the largest gain comes first."""
    accesses = [access for access in trace.accesses if access.kernel == kernel]
    branches = [branch for branch in trace.branches if branch.kernel == kernel]
    events = [event for event in trace.kernels if event.name == kernel]
    costly = [a for a in accesses if gains is None or (named(a.file), a.line) in gains]
    lines = (
        *_lines(costly, "shared", ("load", "store", "async_copy"), _conflicts, named),
        *_lines(costly, "global", ("load", "store", "async_copy"), _uncoalesced, named),
    )
    return (
        *_by_gain(lines, gains or {}),
        *_atomics(accesses, named),
        *_local(costly, named),
        *_divergence(branches, events, named),
        *_one_stage(events),
    )


def _by_gain(sentences: Iterable[str], gains: Gains) -> Iterator[str]:
    """The sentences, each with the predicted gain of its line, the largest first."""
    places = {f"{file}:{line}:": gain for (file, line), gain in gains.items()}
    found = [(gain, text) for text in sentences for place, gain in places.items() if text.startswith(place)]
    if not gains:
        yield from sentences
    for gain, text in sorted(found, key=lambda each: -each[0]):
        yield f"{text} Predicted gain on an H100: {gain:.0%} of the time."


def by_line(accesses: Iterable[AccessEvent]) -> list[AccessEvent]:
    """Add up the accesses with the same source line, kind and stride; the largest excess comes first."""
    sums: dict[tuple[object, ...], AccessEvent] = {}
    for access in accesses:
        key = (access.kernel, access.file, access.line, access.space, access.operation, access.bytes, access.stride)
        known = sums.get(key)
        sums[key] = access if known is None else _together(known, access)
    return sorted(sums.values(), key=lambda each: (-each.excess, -each.units, each.file, each.line))


def _together(a: AccessEvent, b: AccessEvent) -> AccessEvent:
    return replace(
        a,
        requests=a.requests + b.requests,
        lanes=a.lanes + b.lanes,
        units=a.units + b.units,
        excess=a.excess + b.excess,
        worst=max(a.worst, b.worst),
    )


def _lines(
    accesses: Iterable[AccessEvent],
    space: str,
    operations: tuple[str, ...],
    sentence: Callable[[AccessEvent, float], str],
    named: Named,
) -> Iterator[str]:
    lines = by_line(a for a in accesses if a.space == space and a.operation in operations)
    total = sum(access.excess for access in lines)
    for access in lines[:_MOST_LINES]:
        needed = access.units - access.excess
        if total and access.excess >= _LEAST_SHARE * total and access.units >= _POOR * needed:
            yield f"{named(access.file)}:{access.line}: {sentence(access, access.excess / total)}"


def _conflicts(access: AccessEvent, share: float) -> str:
    needed = (access.units - access.excess) / access.requests
    text = (
        f"{_what(access)} take {_number(access.units / access.requests)} wavefronts per request where "
        f"{_number(needed)} are enough ({access.excess:,} bank conflicts, {share:.0%} of the kernel's)"
    )
    if access.stride is None:
        return f"{text}: the lanes' addresses are not evenly spaced. Let neighbouring lanes use neighbouring words."
    banks = _banks(access.stride)
    rows = abs(access.stride) // _WORD_BYTES
    remedy = (
        f"Pad rows of {rows} words to {rows + 1}, or let neighbouring lanes use neighbouring words."
        if access.bytes <= _WORD_BYTES
        else f"Pad rows of {rows} words to {rows + access.bytes // _WORD_BYTES}, so that rows stay aligned."
    )
    return f"{text}: lanes are {access.stride} bytes apart and use only {banks} of {_BANKS} banks. {remedy}"


def _banks(stride: int) -> int:
    """The number of banks that hold the first bytes of lanes `stride` bytes apart."""
    return _BANKS // math.gcd(abs(stride) // _WORD_BYTES, _BANKS)


def _uncoalesced(access: AccessEvent, share: float) -> str:
    needed = (access.units - access.excess) / access.requests
    text = (
        f"{_what(access)} touch {_number(access.units / access.requests)} sectors of {_SECTOR_BYTES} bytes per request "
        f"where {_number(needed)} are enough ({share:.0%} of the kernel's excess)"
    )
    if access.operation == "async_copy" and access.stride == access.bytes:
        return (
            f"{text}: the lanes are neighbours, but in global or in shared memory they start within a sector. Let rows "
            f"begin at multiples of {_SECTOR_BYTES} bytes in both (the shared array with __align__(128))."
        )
    if access.stride is not None and abs(access.stride) == access.bytes:
        return (
            f"{text}: the lanes are neighbours but start within a sector. Let rows begin at multiples of "
            f"{_SECTOR_BYTES} bytes (cudaMallocPitch, padding)."
        )
    how = (
        "the lanes' addresses are not evenly spaced"
        if access.stride is None
        else f"lanes are {access.stride} bytes apart"
    )
    remedy = "Let threadIdx.x run along the row, so that neighbouring lanes access neighbouring elements"
    if access.operation == "load":
        remedy += "; where columns are needed, load rows into a shared tile and read the tile transposed"
    else:
        remedy += "; transpose in a shared tile before storing"
    if access.bytes < 16 and access.stride is not None and abs(access.stride) >= 16:
        remedy += "; or let each thread access 16 bytes at a time (float4)"
    return f"{text}: {how}. {remedy}."


def _atomics(accesses: Iterable[AccessEvent], named: Named) -> Iterator[str]:
    shared = by_line(a for a in accesses if a.space == "shared" and a.operation in ("atomic", "reduction"))
    for access in shared[:_MOST_LINES]:
        waiting = access.excess / access.requests
        if waiting >= _SAME_ADDRESS:
            yield (
                f"{named(access.file)}:{access.line}: at this atomic on shared memory, {_number(waiting)} lanes of a "
                "warp wait for others with the same address. Combine within the warp first (__shfl_down_sync, "
                "__reduce_add_sync), or give each warp its own counters."
            )


def _local(accesses: Iterable[AccessEvent], named: Named) -> Iterator[str]:
    local = by_line(a for a in accesses if a.space == "local")
    if local:
        most = max(local, key=lambda each: each.requests)
        requests = sum(each.requests for each in local)
        yield (
            f"{named(most.file)}:{most.line}: {requests:,} requests use local memory, which is in device memory; "
            "most of them are here. Arrays stay in registers if every index is known at compile time (#pragma unroll)."
        )


def _divergence(branches: Iterable[BranchEvent], events: Iterable[KernelEvent], named: Named) -> Iterator[str]:
    instructions = sum(event.counters.get("instructions", 0) for event in events)
    lanes = sum(event.counters.get("thread_instructions", 0) for event in events)
    if not instructions or lanes / instructions >= 32 * _LEAST_EFFICIENCY:
        return
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for branch in branches:
        reached, divergent = found.get((branch.file, branch.line), (0, 0))
        found[branch.file, branch.line] = (reached + branch.reached, divergent + branch.divergent)
    total = sum(divergent for _, divergent in found.values())
    ordered = sorted(found.items(), key=lambda item: -item[1][1])
    for (file, line), (reached, divergent) in ordered[:_MOST_LINES]:
        if divergent and divergent >= _LEAST_SHARE * total:
            yield (
                f"{named(file)}:{line}: lanes of a warp diverge here {divergent:,} of {reached:,} times, and "
                f"on average {lanes / instructions:.1f} of 32 lanes work. Let whole warps take the same branch: decide "
                "by threadIdx.x / 32, or sort the work."
            )


def _one_stage(events: Iterable[KernelEvent]) -> Iterator[str]:
    """Advise overlapping bulk copies with work if a block never has copies in flight for two barrier objects."""
    for event in events:
        loads, stages = event.counters.get("bulk_loads", 0), event.counters.get("bulk_stages", 0)
        if stages == 1 and loads >= _LEAST_LOADS * prod(event.grid):
            yield (
                f"Each block makes about {_number(loads / prod(event.grid))} bulk copies to shared memory, and never "
                "has copies in flight for two barrier objects: it waits for each tile right after it requests the "
                "tile. Keep two or more tiles, each with a barrier object, and start copying the next tile before you "
                "work on the current one."
            )
            return


def _what(access: AccessEvent) -> str:
    names = {"load": "loads", "store": "stores", "async_copy": "asynchronous copies"}
    return f"{access.space} {names[access.operation]} of {access.bytes} bytes"


def _number(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:,.0f}"
