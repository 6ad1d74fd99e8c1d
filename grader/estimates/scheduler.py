"""The cycles that one scheduler of an SM needs for its warps to execute a sequence of machine instructions.

An SM has four. Each issues at most one instruction a cycle, from a warp whose next one may issue: the stall count of
the one before has passed, and its scoreboards are free. Arithmetic units belong to a scheduler: n results per cycle and
SM (`gpus`) for the 32 lanes of a warp are 128 / n cycles. Shared memory serves a wavefront a cycle, L1 a line of 128
bytes; with shuffles they are the SM's queue, of which a scheduler gets one in four cycles, as the others do the same.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from grader.estimates.gpus import ALL, Gpu
from grader.estimates.machine_code import NO_SCOREBOARD, Instruction

_FMA, _INTEGER, _XU, _FP64, _TENSOR = "FP32 units", "integer units", "special functions", "FP64 units", "tensor cores"
SHARED, L1 = MEMORIES = "shared memory", "L1 and L2"
_UNIFORM, _BRANCH = "uniform units", "branches"
_UNITS = {
    _FMA: "FFMA FMUL FADD HFMA2 HADD2 HMUL2 FFMA2 IMAD",
    _XU: "MUFU I2F F2I F2F FRND",
    _FP64: "DFMA DADD DMUL DSETP DMNMX",
    _TENSOR: "HMMA IMMA BMMA HGMMA QGMMA IGMMA BGMMA DMMA",
    _UNIFORM: "LDC ULDC S2R S2UR R2UR LDCU",
    L1: "LDG STG LDL STL LD ST ATOM ATOMG RED LDGSTS UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED",
    SHARED: "LDS STS ATOMS LDSM STSM SHFL MATCH REDUX LDGDEPBAR SYNCS",
    _BRANCH: "BAR BRA BSSY BSYNC EXIT CALL RET WARPSYNC YIELD NOP BRX DEPBAR WARPGROUP",
}
_UNIT_OF = {name: unit for unit, names in _UNITS.items() for name in names.split()}
_LATENCY = {_XU: ALL["special_latency"], _FP64: ALL["fp64_latency"], _TENSOR: ALL["tensor_latency"]}
_MOVES = ("IMAD.MOV", "IMAD.SHL", "IMAD.IADD", "IMAD.X")
_PRODUCTS = {"16816": 16 * 8 * 16, "1688": 16 * 8 * 8, "16832": 16 * 8 * 32, "884": 8 * 8 * 4}  # of an opcode's shape
_WARPGROUP = re.compile(r"\.(\d+)x(\d+)x(\d+)\.")
_MAX_ISSUES = 60_000


@dataclass(frozen=True)
class Traffic:
    """What one execution of a memory instruction moves, on average: wavefronts in shared memory (or lanes that wait for
    the same address of an atomic), sectors in global or local memory, and the share of them that misses L1."""

    wavefronts: float = 1.0
    sectors: float = 4.0
    missed: float = 1.0
    lines: float = 1.0
    returned: float = 128.0
    dram: float = 0.0


class Step(NamedTuple):
    """One instruction with its costs in cycles. `unit` is busy for `busy`; a result is there `latency` after the unit
    took it. `barrier`: waits for all warps of its block."""

    instruction: Instruction
    unit: str
    busy: float
    latency: float
    barrier: bool = False


def step_of(instruction: Instruction, moved: Traffic, gpu: Gpu, barriers: bool = True) -> Step:
    """The cost of one instruction of one warp."""
    name, opcode = instruction.name, instruction.opcode
    unit = _UNIT_OF.get(name, _UNIFORM if name.startswith("U") else _INTEGER)
    busy, latency = 2.0, _LATENCY.get(unit, ALL["fma_latency"])
    if unit in MEMORIES:
        busy, latency = _memory(unit, name, "CONSTANT" in opcode, moved, gpu)
    elif unit == _TENSOR:
        busy = _products(opcode) / gpu.tensor_fp16 * 4
    elif name == "BAR":
        busy, latency = 1.0, ALL["barrier_latency"]
    elif unit == _UNIFORM and name in _UNIT_OF:
        latency = ALL["constant_latency"]
    elif name != "IMAD" or opcode.startswith(_MOVES):
        busy = 128 / {_FMA: gpu.fp32, _XU: ALL["special"], _FP64: gpu.fp64}.get(unit, ALL["int32"])
    return Step(instruction, unit, busy, latency, name == "BAR" and barriers)


def _memory(unit: str, name: str, read_only: bool, moved: Traffic, gpu: Gpu) -> tuple[float, float]:
    """(cycles that a scheduler's share of the SM's memory is busy, latency)."""
    if unit == SHARED:
        if name in ("LDS", "STS", "ATOMS", "LDSM", "STSM"):
            return 4 * max(1.0, moved.wavefronts), gpu.shared_latency - 5
        return 0.0 if name == "LDGDEPBAR" else 4.0, gpu.shared_latency - 6
    busy = max(
        1.0,
        moved.lines,
        moved.sectors / 4,
        moved.returned / ALL["l1_returned_read_only" if read_only else "l1_returned"],
        moved.missed * moved.sectors * 32 / gpu.l2_per_sm,
    )
    missed = gpu.l2_latency + min(1.0, moved.dram) * (gpu.dram_latency - gpu.l2_latency)
    return 4 * busy, missed if moved.missed > 0.02 else gpu.l1_latency - 4


def _products(opcode: str) -> float:
    """Multiplications of a matrix instruction of one warp, in FP16's by mma.sync."""
    wide = 2.0 if "TF32" in opcode else 0.5 if opcode.startswith(("QGMMA", "IGMMA")) else 1.0
    if group := _WARPGROUP.search(f"{opcode}."):
        return wide * prod(map(int, group.groups())) / 4 / ALL["wgmma_rate"]
    return wide * next((n for shape, n in _PRODUCTS.items() if f".{shape}." in f"{opcode}."), _PRODUCTS["16816"])


def cycles(steps: Sequence[Step], warps: int, group: int, repeats: int) -> float:
    """The cycles until `warps` warps have executed `steps` `repeats` times. Every `group` warps meet at barriers."""
    count, issued, now, last = len(steps), 0, 0.0, 0.0
    total, queue, read = count * repeats, ALL["queue_cycles"], ALL["operands_read"]
    units: dict[str, float] = {}
    boards = [[0.0] * 8 for _ in range(warps)]
    place = [0] * warps
    at_barrier: dict[int, list[tuple[float, int]]] = {}
    ready = [(float(w % 2), w) for w in range(warps if count else 0)]
    heapq.heapify(ready)
    while ready:
        when, warp = heapq.heappop(ready)
        step, board = steps[place[warp] % count], boards[warp]
        done, unit = step.instruction, L1 if step.unit in MEMORIES else step.unit
        free = units.get(unit, 0.0)
        start = max(when, now, free - queue if unit == L1 else free)
        for bit in done.waits:
            start = max(start, board[bit])
        if start > when and ready and ready[0][0] < start:
            heapq.heappush(ready, (start, warp))
            continue
        now, after, begin = start + 1.0, start + max(done.stall, 1), max(start, free)
        units[unit] = begin + step.busy
        board[done.sets_write] = max(board[done.sets_write], begin + step.busy + step.latency)
        board[done.sets_read] = max(board[done.sets_read], begin + step.busy + read)
        last = max(last, after)
        place[warp] += 1
        issued += 1
        if issued > _MAX_ISSUES:
            return max(last, *board[:NO_SCOREBOARD]) * total * warps / issued
        if place[warp] == total:
            last = max(last, *board[:NO_SCOREBOARD])
        elif step.barrier:
            waiting = at_barrier.setdefault(warp // group, [])
            waiting.append((after, warp))
            if len(waiting) == min(group, warps - warp // group * group):
                go = max(waiting)[0] + step.latency
                for _, other in waiting:
                    heapq.heappush(ready, (go, other))
                waiting.clear()
        else:
            heapq.heappush(ready, (after, warp))
    return last
