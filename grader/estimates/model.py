"""The time of a kernel's launches on a GPU.

    time = launches × (waves of blocks × cycles of a wave / clock + start), at least what DRAM needs

The cycles of a wave are those of one scheduler that executes, for each warp it holds, straight stretches of machine
code as often as `flow` says (`scheduler`), with L1 as large as shared memory leaves it.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, NamedTuple

from pydantic import Field

from grader.base.sizes import Count
from grader.estimates.counts import Group
from grader.estimates.flow import block_executions
from grader.estimates.gpus import ALL, LIMITS, Gpu
from grader.estimates.machine_code import Code
from grader.estimates.scheduler import MEMORIES, Step, Traffic, cycles, step_of
from grader.programs.trace import ReuseEvent
from grader.sandbox.room import Sentence

_LAUNCH_MS = ALL["launch_ms"]
_CARVEOUTS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
_SAME_COUNT = 0.04
_ADDRESS = re.compile(r"\[(\w+(?:\.\w+)?)(?:\+(0x[0-9a-f]+))?\]")
_BUSY = 0.7  # a unit that is busy for less of the time is not what limits a kernel: its warps wait for results
_Stretch = tuple[float, list[Step]]  # instructions that a warp executes equally often, and how often


class WhatIf(NamedTuple):
    """Accesses in the (space, file, line) `mended` move no more than they need, or none are of local memory. An SM
    holds `resident` blocks at once. Without `barriers` warps do not wait for each other. Four neighbouring loads of 4
    bytes in the lines of PTX `wide` are one of 16."""

    mended: tuple[str, str, int] = ("", "", 0)
    resident: int = 0
    barriers: bool = True
    wide: Collection[int] = ()


@dataclass(frozen=True)
class Fix:
    """Something to mend, at `file`:`line` (0: the whole kernel), and what the kernel would take then."""

    what: Sentence
    file: Sentence
    line: Count
    without_ms: float


@dataclass(frozen=True)
class KernelEstimate:
    """The predicted time of a kernel's launches together. `limit` is what it waits for, busy for the share `busy`
    (0..1) of its time, most of it at `file`:`line` if that is known. `occupancy`: of an SM's warps. `misfit`: the part
    of the counts that the flow through the machine code does not explain. `why`: not predictable."""

    name: Sentence
    launches: float
    ms: float = 0.0
    limit: Sentence = ""
    busy: float = 0.0
    file: Sentence = ""
    line: Count = 0
    occupancy: float = 0.0
    misfit: float = 0.0
    fixes: Annotated[tuple[Fix, ...], Field(max_length=16)] = ()
    why: Sentence = ""


def resident_blocks(group: Group, registers: int, gpu: Gpu) -> int:
    """How many blocks an SM holds at once."""
    limits = LIMITS[gpu.name]
    per_warp = math.ceil(max(registers, 16) * 32 / 256) * 256
    by_registers = limits.registers // 4 // per_warp * 4 // group.warps
    shared = group.static_shared + group.dynamic_shared + limits.reserved_shared
    by_shared = limits.shared // max(1, math.ceil(shared / 128) * 128)
    return max(1, min(limits.blocks, limits.threads // 32 // group.warps, by_registers, by_shared))


def kernel_time(group: Group, code: Code, gpu: Gpu, what_if: WhatIf | None = None) -> KernelEstimate:
    """Predict the time of all launches of a group."""
    what_if = what_if or WhatIf()
    held = what_if.resident or resident_blocks(group, code.registers, gpu)
    launches, blocks = group.launches, group.blocks / group.launches
    if group.streams > 1:  # launches on several streams run together, while one of them copies
        together = min(launches, group.streams - 1)
        launches, blocks = launches / together, blocks * together
    executions, misfit = block_executions(code, group.lines, group.blocks * group.warps)
    traffic, dram_bytes = _traffic(group, gpu, held, what_if.mended)
    stretches: list[_Stretch] = []
    for block, times in zip(code.blocks, (executions / group.blocks / group.warps).tolist(), strict=True):
        issued = [i for i in block.instructions if i.predicate != "@!PT" and times >= 1e-3]
        steps = [step_of(i, traffic.get(i.ptx_line, Traffic()), gpu, what_if.barriers) for i in issued]
        if what_if.wide:
            steps = list(_widened(steps, what_if.wide, group))
        same = next((members for n, members in stretches if abs(n - times) <= _SAME_COUNT * n), None)
        if same is None:
            stretches.append((times, steps))
        else:
            same += steps
    full_waves = math.floor(blocks / (gpu.sms * held))
    left = math.ceil(blocks / gpu.sms - full_waves * held - 1e-9)
    spent = sum(n * _wave(group, stretches, size) for n, size in ((full_waves, held), (1, min(held, left))) if n * size)
    sm_ms, dram_ms = spent / gpu.clock_ghz / 1e6, dram_bytes / launches / gpu.dram_gb_per_s / ALL["dram_share"] / 1e6
    atomics_ms = _atomics_ms(group, code) / launches
    ms, line = max(sm_ms, dram_ms, atomics_ms), 0
    if atomics_ms == ms > 0:
        limit, busy = "atomics at one address", 1.0
    elif ms < _LAUNCH_MS:
        limit, busy = "launches", _LAUNCH_MS / (ms + _LAUNCH_MS)
    elif dram_ms > _BUSY * sm_ms:
        limit, busy = "DRAM", dram_ms / ms
    else:
        limit, busy, line = _limit(stretches, blocks * group.warps / gpu.sms / 4 / spent)
    file, line = next(((a.file[:900], a.line) for (at, _), a in group.accesses.items() if at == line), ("", 0))
    occupancy = min(1.0, held * group.warps * 32 / LIMITS[gpu.name].threads)
    ms = launches * (ms + _LAUNCH_MS)
    return KernelEstimate(group.kernel[:900], group.launches, ms, limit, busy, file, line, occupancy, misfit)


def _widened(steps: Sequence[Step], lines: Collection[int], group: Group) -> Iterator[Step]:
    """The steps, where four loads of neighbouring words are one of 16 bytes. It takes four wavefronts of shared memory,
    or one if all lanes read the same."""
    quads: dict[tuple[str, int], list[int]] = {}
    dropped, first = set[int](), set[int]()
    for number, step in enumerate(steps):
        if step.instruction.ptx_line in lines and (found := _ADDRESS.search(step.instruction.operands)):
            quad = quads.setdefault((found[1], int(found[2] or "0", 16) // 16), [])
            quad.append(number)
            if len(quad) == 4:
                first.add(quad[0])
                dropped.update(quad[1:])
                quad.clear()
    for number, step in enumerate(steps):
        access = group.accesses.get((step.instruction.ptx_line, "shared"))
        least = 16.0 if number in first and access and access.stride != 0 else 0.0
        if number not in dropped:
            yield step._replace(busy=max(step.busy, least))


def _wave(group: Group, stretches: Sequence[_Stretch], blocks: int) -> float:
    """The cycles that an SM needs for so many blocks that begin together."""
    warps, members = (max(1, math.ceil(n * group.warps / 4)) for n in (blocks, 1))
    share = max(ALL["lone_warp"], min(1.0, blocks * group.warps / 4 / warps))
    total = 0.0
    for times, plain in stretches:
        steps = [step._replace(busy=step.busy * share) if step.unit in MEMORIES else step for step in plain]
        first = cycles(steps, warps, members, 1)
        again = (cycles(steps, warps, members, 3) - first) / 2 if times >= 2 else first
        total += min(1.0, times) * first + max(0.0, times - 1) * again
    return total


def _limit(stretches: Sequence[_Stretch], warps_per_cycle: float) -> tuple[str, float, int]:
    """(limit, the share of the time for which it is busy, PTX line with most of it)."""
    busy, at_line = defaultdict[str, float](float), defaultdict[tuple[str, int], float](float)
    for times, steps in stretches:
        for step in steps:
            busy[step.unit] += times * step.busy * warps_per_cycle
            busy["issue slots"] += times * warps_per_cycle
            at_line[step.unit, step.instruction.ptx_line] += times * step.busy
    together = sum(busy[name] for name in MEMORIES)  # one queue
    busy[max(MEMORIES, key=busy.__getitem__)] = together
    limit = max(busy, key=busy.__getitem__)
    if busy[limit] < _BUSY:
        return "latency", 1 - busy[limit], 0
    line = max((cost, line) for (unit, line), cost in at_line.items() if unit == limit)[1] if limit in MEMORIES else 0
    return limit, min(1.0, busy[limit]), line


def _atomics_ms(group: Group, code: Code) -> float:
    """What L2 needs for additions of floats by all lanes at one address, one after the other; others overlap."""
    atomics = ((line, a) for (line, space), a in group.accesses.items() if (space, a.stride) == ("global", 0))
    added = (a for line, a in atomics if a.operation in ("atomic", "reduction") and ".f" in code.ptx.get(line, ""))
    return ALL["atomic_ms"] * sum(access.lanes for access in added if access.lanes > 8 * access.requests)


# ---- L1, L2, DRAM ---------------------------------------------------------------------------------------------------


def _traffic(group: Group, gpu: Gpu, resident: int, mended: tuple[str, str, int]) -> tuple[dict[int, Traffic], float]:
    """What one execution of each line of PTX moves, and the bytes from and to DRAM of all launches: what a launch
    touches first, if that is more than half of L2 (which serves half of the SMs); what L2 has lost when it is used
    again; and local memory that L2 cannot hold: threads walk through it in turns, so what does not fit is gone before
    it is used again."""
    blocks, half = group.blocks / group.launches, gpu.l2_bytes / 2
    held = max(1, math.ceil(min(resident, blocks / gpu.sms)))
    on_gpu = min(held * gpu.sms, blocks)
    own = group.static_shared + group.dynamic_shared
    shared = held * (own + 1024 * bool(own))
    carveout = next((size << 10 for size in _CARVEOUTS if size << 10 >= shared), shared)
    lines = max(8 << 10, gpu.l1_bytes - carveout) / held / 128  # of 128 bytes, that L1 has for one block
    arrays: dict[int, tuple[float, float]] = {}  # bytes that blocks touch first, each for itself; size
    reuse = {place: group.reuse.get(place, _UNSEEN) for place in group.accesses}
    for place, access in group.accesses.items():
        if access.space == "global":
            use = reuse[place]
            touched, size = arrays.get(use.array, (0.0, 0.0))
            touched += access.units * 32 * _shares(use)[-1] / group.launches
            arrays[use.array] = touched, max(size, use.array_bytes or math.inf)
    footprint = sum(map(min, arrays.values()))
    total = group.launches * footprint if footprint > half else 0.0
    used = group.local_bytes * group.threads
    local = Traffic(missed=_beyond(lines * 128, used), dram=_beyond(half, used * held * gpu.sms))
    found = {}
    for place, access in group.accesses.items():
        mend = (access.space, access.file, access.line) == mended
        each = (access.units - mend * access.excess) / max(1.0, access.requests)
        if access.space == "shared":
            moved = Traffic(wavefronts=each + (not mend and access.operation in ("atomic", "reduction")))
        elif access.space == "local":
            moved = Traffic(0, 0, 0, 0, 0, 0) if mended[0] == "local" else replace(local, sectors=each)
            total += moved.missed * moved.dram * access.units * 32
        else:
            loads, shares = access.operation == "load", _shares(reuse[place])
            touched, size = arrays[reuse[place].array]
            # Between two uses each block on the GPU uses as many lines; blocks that read the same array share them.
            others = max(1.0, on_gpu / max(1.0, min(blocks, touched / max(size, 1.0))))
            again = list(enumerate(shares[:-1]))
            kept = lines if loads else 0.0
            lost = sum(part * _beyond(half, 0.75 * 2**i * 128 * others) for i, part in again if 2 ** (i - 1) > kept)
            hits = sum(part * min(1.0, kept / 2**i) for i, part in again[1:] if kept >= 2 ** (i - 1))
            missed = 1.0 - hits - shares[0] if loads else 1.0
            first = shares[-1] * min(1.0, size / max(touched, 1.0)) * (footprint > half)
            wide = abs(access.stride) if access.stride is not None else 128
            lanes = access.lanes / max(1.0, access.requests)
            banks = max(math.gcd(wide // 4, 32), each / ALL["l1_tags"]) if wide >= 128 else lanes * wide / 128
            spread = max(each / 4, min(each, 0 if mend else banks))
            dram = (first + lost) / max(missed, 1e-9)
            moved = Traffic(1.0, each, missed, spread, lanes * access.bytes if loads else 0.0, dram)
            total += access.units * (64 if wide >= 64 else 32) * lost
        found[place[0]] = moved
    return found, total


_UNSEEN = ReuseEvent(0, 0, 0, 0, ())


def _shares(use: ReuseEvent) -> list[float]:
    """`near` as shares of all uses; without uses, all are first ones."""
    total = sum(use.near)
    return [count / total for count in use.near] if total else [0.0, 1.0]


def _beyond(room: float, used: float) -> float:
    """The share of `used` bytes that has no room."""
    return max(0.0, 1 - room / max(used, 1e-9))
