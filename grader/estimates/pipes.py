"""What a machine instruction costs: the pipe it needs, for how long, and when its result is there.

A warp has 32 lanes and a scheduler a quarter of the SM, so n results per cycle and SM (gpus.py) are 128 / n cycles of a
scheduler's pipe. Shared memory serves a wavefront a cycle, L1 a line of 128 bytes a cycle; both are the SM's, so a
scheduler's share is one in four cycles.
"""

from __future__ import annotations

from dataclasses import dataclass

from grader.estimates.gpus import Gpu
from grader.estimates.sass import Instruction
from grader.estimates.scheduler import Step

FMA, ALU, XU, FP64, TENSOR, UNIFORM, MEMORY, BRANCH = range(8)
PIPE_NAMES = ("FP32 units", "integer units", "special functions", "FP64 units", "tensor cores", "uniform units",
              "memory", "branches")  # fmt: skip
_MEMORY = ("LDS", "STS", "LDG", "STG", "LDL", "STL", "LD", "ST", "ATOM", "ATOMS", "ATOMG", "RED", "LDSM", "STSM",
           "SHFL", "LDGSTS", "MATCH", "REDUX", "TEX", "TLD4", "LDGDEPBAR")  # fmt: skip
L1_NAMES = ("LDG", "STG", "LDL", "STL", "LD", "ST", "ATOM", "ATOMG", "RED", "LDGSTS", "TEX", "TLD4")
_SHARED = ("LDS", "STS", "ATOMS", "LDSM", "STSM")


_PLAIN = 2
"""How much more L1 returns to plain loads than to those of read-only data (ld.global.nc). Measured on an H100: a load
of 4 bytes for 32 lanes takes 1.14 cycles of an SM (matmul_rows), or 2.5 (style2)."""


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


def step_of(instruction: Instruction, traffic: Traffic | None, gpu: Gpu) -> Step:
    """The cost of one instruction of one warp."""
    name, opcode = instruction.name, instruction.opcode
    pipe, busy, latency, queued, barrier = ALU, 128 / gpu.int32, 4.0, False, False
    if name in ("FFMA", "FMUL", "FADD", "HFMA2", "HADD2", "HMUL2", "FFMA2"):
        pipe, busy = FMA, 128 / gpu.fp32
    elif name == "IMAD":
        pipe, busy = FMA, 128 / (gpu.fp32 if opcode.startswith(_MOVES) else gpu.int32)
    elif name in ("MUFU", "I2F", "F2I", "F2F", "FRND"):
        pipe, busy, latency = XU, 128 / gpu.xu, 18.0
    elif name in ("DFMA", "DADD", "DMUL", "DSETP", "DMNMX"):
        pipe, busy, latency = FP64, 128 / gpu.fp64, 8.0
    elif name in ("HMMA", "IMMA", "BMMA", "HGMMA", "QGMMA", "DMMA"):
        pipe, busy, latency = TENSOR, _products(opcode) / gpu.tensor_fp16 * 4, 18.0
    elif name in _MEMORY:
        pipe, queued = MEMORY, True
        moved = traffic or Traffic()
        if name in _SHARED:
            busy, latency = 4 * max(1.0, moved.wavefronts), gpu.shared_latency - 5
        elif name in ("SHFL", "MATCH", "REDUX", "LDGDEPBAR"):
            busy, latency = 4.0 if name != "LDGDEPBAR" else 0.0, gpu.shared_latency - 6
        else:
            missed = moved.missed * moved.sectors * 32
            busy = 4 * max(
                1.0,
                moved.lines / gpu.l1_tags,
                moved.sectors / 4,
                moved.returned / gpu.l1_returned / (1 if "CONSTANT" in opcode else _PLAIN),
                missed / gpu.l2_per_sm,
            )
            latency = gpu.l1_latency - 4
            if moved.missed > 0.02:
                latency = gpu.l2_latency + min(1.0, moved.dram) * (gpu.dram_latency - gpu.l2_latency)
    elif name in ("LDC", "ULDC", "S2R", "S2UR", "R2UR", "LDCU"):
        pipe, busy, latency = UNIFORM, 2.0, 30.0
    elif name == "BAR":
        pipe, busy, latency, barrier = BRANCH, 1.0, 20.0, True
    elif name in ("BRA", "BSSY", "BSYNC", "EXIT", "CALL", "RET", "WARPSYNC", "YIELD", "NOP", "BRX", "DEPBAR"):
        pipe, busy = BRANCH, 2.0
    elif name.startswith("U"):
        pipe, busy = UNIFORM, 2.0
    waits = instruction.sets_write, instruction.sets_read, instruction.waits
    return Step(pipe, busy, latency, instruction.stall, *waits, queued, barrier)


_MOVES = ("IMAD.MOV", "IMAD.SHL", "IMAD.IADD", "IMAD.X")


def _products(opcode: str) -> float:
    """Multiplications of a matrix instruction, in FP16's."""
    shapes = {"16816": 16 * 8 * 16, "1688": 16 * 8 * 8, "16832": 16 * 8 * 32, "884": 8 * 8 * 4}
    size = next((size for shape, size in shapes.items() if f".{shape}." in f"{opcode}."), 16 * 8 * 16)
    return size * (2.0 if "TF32" in opcode else 1.0)
