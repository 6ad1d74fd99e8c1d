"""The other processors that the emulator runs on, as far as this one can stand in for them.

AVX2 and SSE are compiled for here, and run here. 64-bit Arm is compiled for by Debian's cross compiler and run by qemu:
nvcc compiles a program's host code with the compiler that NVCC_CCBIN names, PTX is the same everywhere, and the
translated kernels and the runtime are C. So whole programs run, host code too. Arm's memory ordering and speed are not
covered, since qemu runs on this processor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from grader.programs.toolkit import find_toolkit

ARM = "aarch64-linux-gnu"
QEMU = f"prlimit --as={24 << 30} qemu-"
"""qemu keeps a record of every page that a program maps. With the terabyte that the emulator reserves for device memory
where it can, every start took 36 s (measured on a busy machine)."""


@dataclass(frozen=True)
class Machine:
    """A processor; `environment` is what makes the emulator's builds and emulator.tests.programs use it."""

    name: str
    environment: Mapping[str, str] = field(default_factory=dict)
    slower: int = 1

    def enter(self, patch: pytest.MonkeyPatch) -> None:
        for name, value in self.environment.items():
            patch.setenv(name, value)


def _arm() -> Machine:
    include = find_toolkit().include
    environment = {
        "GRADER_EMULATOR_ISA": "neon",
        "CC": f"{ARM}-gcc",
        "CXX": f"{ARM}-g++",
        "NVCC_CCBIN": f"{ARM}-g++",
        "CPATH": f"{include}:{include / 'cccl'}",  # nvcc looks for headers of an Arm toolkit, which is not there
        "GRADER_TEST_RUNNER": f"{QEMU}aarch64 -L /usr/{ARM}",
    }
    return Machine("neon", environment, slower=10)


HERE = Machine("native")
OTHERS = (Machine("avx2", {"GRADER_EMULATOR_ISA": "avx2"}), Machine("sse", {"GRADER_EMULATOR_ISA": "sse"}), _arm())
OLDER = (
    Machine("avx2", {"GRADER_EMULATOR_ISA": "avx2", "GRADER_TEST_RUNNER": f"{QEMU}x86_64 -cpu Haswell"}, slower=10),
    Machine("sse", {"GRADER_EMULATOR_ISA": "sse", "GRADER_TEST_RUNNER": f"{QEMU}x86_64 -cpu qemu64"}, slower=10),
)
"""Processors of qemu's that have an instruction set and nothing beyond: a program that uses more is stopped there."""
