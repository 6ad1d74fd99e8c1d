"""The time of a kernel's launches on a GPU.

    time = launches × (waves of blocks × cycles of a wave / clock + start), at least what DRAM needs

The cycles of a wave are those of one scheduler that executes, for each warp it holds, the kernel's machine code:
straight stretches of it as often as `flow` says, with the stalls and scoreboards that ptxas wrote (`scheduler`), pipes
as busy as `pipes` says, and L1 as large as shared memory leaves it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from grader.estimates.counts import Access, Group
from grader.estimates.flow import block_executions
from grader.estimates.gpus import Gpu
from grader.estimates.machine_code import Code
from grader.estimates.pipes import L1_NAMES, PIPE_NAMES, Traffic, step_of
from grader.estimates.sass import Block, Instruction
from grader.estimates.scheduler import Step, cycles
from grader.gpu.facts import known_limits

LAUNCH_MS = 0.0018
"""From a kernel's start to its first instruction and from its last to its end. Measured: 6,000 short launches of style6
need 2.4 µs each beside what the model says, 12,800 of tiled.cu 1.3 µs."""
DRAM_SHARE = 0.91
"""Of the data sheet's bandwidth. Measured: a X + Y moves 3.05 TB/s on an H100, 4.43 on an H200."""
_CARVEOUTS = (0, 8, 16, 32, 64, 100, 132, 164, 196, 228)
_SAME_COUNT = 0.04
_ALONE = 0.5
"""Of the time that an SM's memory queue needs for four schedulers, what it needs for the only one with warps: a
scheduler gets a wavefront every other cycle. Measured: style10, a warp on an SM, 32-way conflicts."""


@dataclass(frozen=True)
class KernelTime:
    """The predicted time of a group's launches together. `limit` is one of LIMITS, `busy` the share of the time (0..1)
    for which it is busy, `line` the PTX line with most of it if that is a memory. `misfit`: the part of the counts that
    the flow through the machine code does not explain. `resident`: blocks of an SM at once."""

    ms: float
    limit: str
    busy: float
    line: int
    resident: int
    misfit: float


ATOMICS = "atomics at one address"
LIMITS = (*PIPE_NAMES, "shared memory", "L1 and L2", "issue slots", "latency", "DRAM", "launches", ATOMICS)
_ATOMIC_MS = 1.9e-6
"""Between two additions of floats at one address. Measured on an H100: reduction_atomics, 33.5 and 134 million."""
_BUSY = 0.7
"""A unit that is busy for less of the time is not what limits a kernel: its warps wait for results."""

Change = Callable[[Traffic, Access], Traffic]
"""What an access would move if something were mended."""


def resident_blocks(group: Group, registers: int, gpu: Gpu) -> int:
    """How many blocks an SM holds at once."""
    limits = known_limits(gpu.capability)
    assert limits is not None
    warps = group.warps
    per_warp = math.ceil(max(registers, 16) * 32 / 256) * 256
    by_registers = limits.registers // 4 // per_warp * 4 // warps
    shared = group.static_shared + group.dynamic_shared + limits.reserved_shared
    by_shared = limits.shared // max(1, math.ceil(shared / 128) * 128)
    return max(1, min(limits.blocks, limits.threads // 32 // warps, by_registers, by_shared))


def kernel_time(
    group: Group,
    code: Code,
    gpu: Gpu,
    *,
    change: Change | None = None,
    resident: int | None = None,
    barriers: bool = True,
) -> KernelTime:
    """Predict the time of all launches of a group. `change` alters what accesses move, `resident` the blocks that an SM
    holds at once; without `barriers`, warps do not wait for each other."""
    held = resident or resident_blocks(group, code.registers, gpu)
    launches, blocks = group.launches, group.blocks / group.launches
    if group.streams > 1:  # launches on several streams run together, while one of them copies
        together = min(launches, group.streams - 1)
        launches, blocks = launches / together, blocks * together
    warps = group.blocks * group.warps
    flow = block_executions(code.kernel, code.ptx, group.lines, warps)
    traffic = _traffic(group, gpu, held, min(held, blocks / gpu.sms), change)
    stretches = _stretches(code.kernel.blocks, flow.executions, warps)
    instructions = [
        (times, [i for b in blocks for i in b.instructions if i.predicate != "@!PT"]) for times, blocks in stretches
    ]
    steps = [(times, [step_of(i, traffic.get(i.ptx_line), gpu) for i in part]) for times, part in instructions]
    wave = _Wave(group, steps, barriers)
    full_waves = math.floor(blocks / (gpu.sms * held))
    left = math.ceil(blocks / gpu.sms - full_waves * held - 1e-9)
    spent = full_waves * (wave(held) if full_waves else 0.0) + (wave(min(held, left)) if left > 0 else 0.0)
    dram_ms = dram_bytes(group, gpu, held) / launches / gpu.dram_gb_per_s / DRAM_SHARE / 1e6
    sm_ms = spent / gpu.clock_ghz / 1e6
    atomics_ms = _atomics_ms(group, code) / launches
    ms = launches * (max(sm_ms, dram_ms, atomics_ms) + LAUNCH_MS)
    if atomics_ms > max(sm_ms, dram_ms):
        limit, busy, line = ATOMICS, 1.0, 0
    elif max(sm_ms, dram_ms) < LAUNCH_MS:
        limit, busy, line = "launches", LAUNCH_MS / (sm_ms + LAUNCH_MS), 0
    elif dram_ms > _BUSY * sm_ms:
        limit, busy, line = "DRAM", min(1.0, dram_ms / max(sm_ms, dram_ms)), 0
    else:
        limit, busy, line = _limit(instructions, steps, blocks * group.warps / gpu.sms / 4 / spent)
    return KernelTime(ms, limit, busy, line, held, flow.misfit)


def _limit(
    parts: Sequence[tuple[float, Sequence[Instruction]]],
    steps: Sequence[tuple[float, Sequence[Step]]],
    warps_per_cycle: float,
) -> tuple[str, float, int]:
    """(limit, the share of the time for which it is busy, PTX line with most of it)."""
    busy: dict[str, float] = {}
    by_line: dict[tuple[str, int], float] = {}
    for (times, instructions), (_, costs) in zip(parts, steps, strict=True):
        for instruction, step in zip(instructions, costs, strict=True):
            name = PIPE_NAMES[step.pipe]
            if step.queued:
                name = "L1 and L2" if instruction.name in L1_NAMES else "shared memory"
                place = name, instruction.ptx_line
                by_line[place] = by_line.get(place, 0.0) + times * step.busy
            busy[name] = busy.get(name, 0.0) + times * step.busy * warps_per_cycle
            busy["issue slots"] = busy.get("issue slots", 0.0) + times * warps_per_cycle
    memories = ("shared memory", "L1 and L2")
    together = sum(busy.get(name, 0.0) for name in memories)  # one queue
    most = max(busy, key=lambda name: together if name in memories and busy[name] >= together / 2 else busy[name])
    share = together if most in memories else busy[most]
    lines = [(cost, line) for (name, line), cost in by_line.items() if name == most]
    return (most, min(1.0, share), max(lines)[1] if lines else 0) if share >= _BUSY else ("latency", 1 - share, 0)


def _atomics_ms(group: Group, code: Code) -> float:
    """What L2 needs for additions of floats that all lanes of a warp make at one address: it makes one after the other.
    Those at other addresses overlap."""
    return _ATOMIC_MS * sum(
        access.lanes
        for (line, space), access in group.accesses.items()
        if space == "global"
        and access.operation in ("atomic", "reduction")
        and access.stride == 0
        and access.lanes > 8 * access.requests
        and ".f" in code.ptx.get(line, "")
    )


def l1_lines(group: Group, gpu: Gpu, held: int) -> float:
    """The lines of 128 bytes that L1 has for one block, beside the shared memory of all that an SM holds."""
    shared = held * (
        group.static_shared + group.dynamic_shared + 1024 * bool(group.static_shared + group.dynamic_shared)
    )
    carveout = next((size << 10 for size in _CARVEOUTS if size << 10 >= shared), shared)
    return max(8 << 10, gpu.l1_bytes - carveout) / held / 128


def missed_share(access: Access, lines: float) -> float:
    """The share of an access's sectors that L1 with so many lines does not hold."""
    if access.operation != "load" or not access.near or not sum(access.near):
        return 1.0
    hits = access.near[0] + sum(
        count * min(1.0, lines / 2**i if lines >= 2 ** (i - 1) else 0.0) for i, count in enumerate(access.near[1:-1], 1)
    )
    return 1.0 - hits / sum(access.near)


def first_share(access: Access) -> float:
    """The share of an access's sectors that its block uses for the first time."""
    return access.near[-1] / sum(access.near) if access.near and sum(access.near) else 1.0


def dram_bytes(group: Group, gpu: Gpu, held: int) -> float:
    """Bytes from and to DRAM of all launches: what a launch touches for the first time, if L2 cannot hold it from the
    launch before; what is used again after L2 has lost it, 64 bytes at least; and local memory that L2 cannot hold."""
    footprint = sum(min(touched, size) for touched, size in _arrays(group).values())
    streamed = group.launches * footprint if footprint > gpu.l2_bytes / 2 else 0.0
    _, missed, dram = _local(group, gpu, held)
    local = missed * dram * sum(a.units * 32 for a in group.accesses.values() if a.space == "local")
    again = 0.0
    for access in group.accesses.values():
        if access.space == "global":
            least = 64 if access.stride is None or abs(access.stride) >= 64 else 32
            again += access.units * least * lost_share(access, group, gpu, held)
    return streamed + local + again


def lost_share(access: Access, group: Group, gpu: Gpu, held: int) -> float:
    """The share of an access's sectors that neither L1 nor L2 holds any more when they are used again. Between two uses
    each block on the GPU uses as many lines; blocks that read the same array share them."""
    if not sum(access.near):
        return 0.0
    touched, size = _arrays(group)[access.array]
    each = group.blocks / group.launches
    on_gpu = min(held * gpu.sms, each)
    others = max(1.0, on_gpu / max(1.0, min(each, touched / max(size, 1.0))))
    lines = l1_lines(group, gpu, held) if access.operation == "load" else 0.0
    lost: float = sum(
        count * max(0.0, 1 - gpu.l2_bytes / 2 / (0.75 * 2**i * 128 * others))
        for i, count in enumerate(access.near[:-1])
        if 2 ** (i - 1) > lines
    )
    return lost / sum(access.near)


def _local(group: Group, gpu: Gpu, held: int) -> tuple[float, float, float]:
    """(lines of 128 bytes that a block's local memory has, the share of accesses that miss L1, the share of those that
    miss L2 too). Threads walk through it in turns, so what does not fit is gone before it is used again. A half of L2
    serves its half of the SMs."""
    used = group.local_bytes * group.threads / 128
    missed = max(0.0, 1 - l1_lines(group, gpu, held) / max(used, 1e-9))
    on_gpu = used * 128 * held * gpu.sms
    return used, missed, max(0.0, 1 - gpu.l2_bytes / 2 / max(on_gpu, 1e-9))


def _arrays(group: Group) -> dict[int, tuple[float, float]]:
    """(bytes that a launch's blocks touch for the first time, each for itself; size) of the arrays in global memory."""
    arrays: dict[int, tuple[float, float]] = {}
    for access in group.accesses.values():
        if access.space == "global":
            before, size = arrays.get(access.array, (0.0, 0.0))
            touched = access.units * 32 * first_share(access) / group.launches
            arrays[access.array] = before + touched, max(size, access.array_bytes or math.inf)
    return arrays


def _traffic(group: Group, gpu: Gpu, held: int, busy: float, change: Change | None) -> dict[int, Traffic]:
    lines = l1_lines(group, gpu, max(1, math.ceil(busy)))
    arrays = _arrays(group)
    streams = sum(min(touched, size) for touched, size in arrays.values()) > gpu.l2_bytes / 2
    local = _local(group, gpu, held)
    found = {}
    for (line, _), access in group.accesses.items():
        each = access.units / max(1.0, access.requests)
        if access.space == "shared":
            moved = Traffic(wavefronts=1 + each if access.operation in ("atomic", "reduction") else each)
        elif access.space == "local":
            moved = Traffic(sectors=each, missed=local[1], dram=local[2])
        else:
            lanes = access.lanes / max(1.0, access.requests) if access.operation == "load" else 0.0
            missed = missed_share(access, lines)
            touched, size = arrays[access.array]
            again = lost_share(access, group, gpu, held)
            dram = (first_share(access) * min(1.0, size / max(touched, 1.0)) * streams + again) / max(missed, 1e-9)
            moved = Traffic(
                sectors=each, missed=missed, lines=_lines_each(access, each), returned=lanes * access.bytes, dram=dram
            )
        found[line] = change(moved, access) if change else moved
    return found


def _lines_each(access: Access, sectors: float) -> float:
    """The lines of 128 bytes that a request with so many sectors is spread over."""
    if access.stride is None or abs(access.stride) >= 128:
        return sectors
    return max(sectors / 4, min(sectors, access.lanes / max(1.0, access.requests) * abs(access.stride) / 128))


def _stretches(blocks: Sequence[Block], executions: Sequence[float], warps: float) -> list[tuple[float, list[Block]]]:
    """Blocks that are executed equally often by a warp, with how often."""
    found: list[tuple[float, list[Block]]] = []
    for block, total in zip(blocks, executions, strict=True):
        times = total / warps
        if times < 1e-3:
            continue
        same = next((members for count, members in found if abs(count - times) <= _SAME_COUNT * count), None)
        if same is None:
            found.append((times, [block]))
        else:
            same.append(block)
    return found


@dataclass(frozen=True)
class _Wave:
    group: Group
    stretches: Sequence[tuple[float, Sequence[Step]]]
    barriers: bool

    def __call__(self, blocks: int) -> float:
        """The cycles that an SM needs for so many blocks that begin together."""
        warps = max(1, math.ceil(blocks * self.group.warps / 4))
        members = max(1, math.ceil(self.group.warps / 4))
        share = max(_ALONE, min(1.0, blocks * self.group.warps / 4 / warps))
        total = 0.0
        for times, steps in self.stretches:
            if not self.barriers:
                steps = [replace(step, barrier=False) for step in steps]
            if share < 1:
                steps = [replace(step, busy=step.busy * share) if step.queued else step for step in steps]
            if times >= 2:
                first = cycles(steps, warps, members, 1)
                third = cycles(steps, warps, members, 3)
                total += first + (third - first) / 2 * (times - 1)
            else:
                total += times * cycles(steps, warps, members, 1)
        return total
