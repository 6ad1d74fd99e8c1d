"""Theoretical occupancy of a launch: how many of its warps an SM can hold at once, and which resource limits that
number.

The formulas are NVIDIA's (cuda_occupancy.h of the toolkit, see occupancy.cpp), compiled once into the cache. They need
no GPU, because the limits of an architecture come from `grader.gpu.facts`.
"""

from __future__ import annotations

import ctypes
import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from grader import sandbox
from grader.base.errors import GraderFault, MachineFault
from grader.gpu.facts import SmLimits
from grader.programs.toolkit import Toolkit
from grader.sandbox.cache import kept

_SOURCE = Path(__file__).with_name("occupancy.cpp")
_LEAST_REGISTERS = 16
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Demand:
    """The resources that one launch needs: `registers` per thread, `threads` and bytes of shared memory per block."""

    registers: int
    threads: int
    static_shared: int = 0
    dynamic_shared: int = 0


@dataclass(frozen=True)
class Occupancy:
    """The warps of a launch that an SM can hold. `limiters` are the resources that, each considered alone, allow the
    fewest blocks; `sentence` puts the occupancy into words."""

    blocks: int
    warps: int
    most_warps: int
    limiters: tuple[str, ...]
    sentence: str

    @property
    def theoretical(self) -> float:
        """The share (0..1) of an SM's warp slots that this launch can fill."""
        return self.warps / self.most_warps


Blocks = Callable[[Demand], tuple[int, dict[str, int]]]
"""Takes a demand and returns (blocks per SM, blocks that each resource alone allows), for one architecture's SM."""


def occupancy(demand: Demand, limits: SmLimits, blocks: Blocks) -> Occupancy:
    """The occupancy of one launch. Raises GraderFault if the calculator does not know the architecture."""
    count, by = blocks(demand)
    warps_per_block = -(-demand.threads // limits.warp)
    fewest = min(by.values())
    limiters = tuple(name for name, most in by.items() if most == fewest)
    return Occupancy(
        blocks=count,
        warps=count * warps_per_block,
        most_warps=limits.threads // limits.warp,
        limiters=limiters,
        sentence=_sentence(demand, limits, blocks, count, limiters),
    )


def _sentence(demand: Demand, limits: SmLimits, blocks: Blocks, count: int, limiters: tuple[str, ...]) -> str:
    shared = demand.static_shared + demand.dynamic_shared
    causes = {
        "registers": f"{demand.registers} registers × {demand.threads} threads",
        "shared memory": f"{shared / 1024:.4g} KiB of shared memory per block",
        "warps": f"{demand.threads} threads per block, of {limits.threads:,} that an SM holds",
        "blocks": f"{limits.blocks} blocks, the most an SM holds, of {demand.threads} threads each",
    }
    text = f"{' and '.join(causes[name] for name in limiters)}: {_blocks(count)} per SM"
    changes = []
    if "registers" in limiters:
        changes += _fewer_registers(demand, blocks, count)
    if limiters != ("blocks",) and demand.threads >= 128 and demand.threads % 64 == 0:
        half = replace(demand, threads=demand.threads // 2)
        changes.append(f"at {half.threads} threads {_number(blocks(half)[0])}")
    if limiters == ("shared memory",):
        changes += _less_shared(demand, blocks, count)
    return f"{text}; {', '.join(changes)}" if changes else text


def _fewer_registers(demand: Demand, blocks: Blocks, count: int) -> list[str]:
    """Phrases on the effect of fewer registers: a register count that still allows no more blocks, and the highest
    count that does. Either can be missing."""
    better = next(
        (
            registers
            for registers in range((demand.registers - 1) // 8 * 8, _LEAST_REGISTERS - 1, -8)
            if blocks(replace(demand, registers=registers))[0] > count
        ),
        None,
    )
    said = []
    halfway = demand.registers * 3 // 4 // 8 * 8
    if halfway >= _LEAST_REGISTERS and (better is None or halfway > better):
        said.append(f"at {halfway} registers still {_number(count)}")
    if better is not None:
        said.append(f"at {better} registers {_number(blocks(replace(demand, registers=better))[0])}")
    return said


def _less_shared(demand: Demand, blocks: Blocks, count: int) -> list[str]:
    shared = demand.static_shared + demand.dynamic_shared
    for kib in range((shared - 1) // 1024, 0, -1):
        more = blocks(replace(demand, static_shared=0, dynamic_shared=kib * 1024))[0]
        if more > count:
            return [f"at {kib} KiB {_number(more)}"]
    return []


def _number(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def _blocks(count: int) -> str:
    return f"{_number(count)} block{'' if count == 1 else 's'}"


# ---- the toolkit's calculator -----------------------------------------------------------------------------------


def calculator(toolkit: Toolkit, limits: SmLimits) -> Blocks:
    """The calculator of cuda_occupancy.h for SMs with these limits, compiled on first use. Raises MachineFault if the
    toolkit lacks the header or there is no g++."""
    library = ctypes.CDLL(str(_library(toolkit)))
    major, minor = limits.compute_capability
    device = (ctypes.c_longlong * 11)(
        major,
        minor,
        limits.threads_per_block,
        limits.threads,
        limits.registers_per_block,
        limits.registers,
        limits.warp,
        limits.shared_per_block,
        limits.shared,
        limits.shared_per_block_optin,
        limits.reserved_shared,
    )

    def blocks(demand: Demand) -> tuple[int, dict[str, int]]:
        kernel = (ctypes.c_longlong * 4)(demand.registers, demand.static_shared, demand.threads, demand.dynamic_shared)
        result = (ctypes.c_longlong * 6)()
        error = library.grader_occupancy(device, kernel, result)
        if error != 0:
            why = "this toolkit does not know the architecture" if error == 2 else "the numbers make no sense"
            raise GraderFault(f"cuda_occupancy.h refused {demand} on compute capability {major}.{minor}: {why}.")
        by = dict(zip(("registers", "shared memory", "warps", "blocks"), list(result)[1:5], strict=True))
        return int(result[0]), by

    return blocks


def _library(toolkit: Toolkit) -> Path:
    header = toolkit.include / "cuda_occupancy.h"
    if not header.is_file():
        raise MachineFault(f"{header} is missing: theoretical occupancy needs the headers of the CUDA toolkit.")
    content = _SOURCE.read_bytes() + header.read_bytes() + platform.machine().encode()

    def make(folder: Path) -> Path:
        library = folder / "occupancy.so"
        command = ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-w"]
        command += ["-isystem", str(toolkit.include), "-o", str(library), str(_SOURCE)]
        done = sandbox.linker(60, readable=(toolkit.root, _SOURCE))(command, folder)
        if done.exit_code != 0:
            raise MachineFault(
                f"The occupancy calculator could not be built from {header}: {done.output.strip()[:500]}; "
                "install g++ and the CUDA toolkit's headers."
            )
        return library

    return kept("native", f"libgrader_occupancy-{hashlib.sha256(content).hexdigest()[:16]}.so", make)
