"""Matrix instructions bit by bit, on random and adversarial fragments: a GPU's results and those of the emulator, which
follow the rule for that GPU's architecture (cudaemu/runtime/tensor_sums.c)."""

from __future__ import annotations

import subprocess
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, build
from grader.programs.engine.cuda import CudaEngine
from tools.tensor_bits.__main__ import build as build_tensor_bits

PROBE = HERE / "tensor_probe.cu"
WORDS = (128, 128, 256, 32, 256)  # of A, B, C, metadata and D in a fragment


@dataclass(frozen=True)
class Probe:
    """What one run of the probe gave: its lines' forms and kinds of numbers, and the words of its fragments."""

    names: tuple[str, ...]
    words: array[int]

    def of(self, line: int) -> array[int]:
        size = len(self.words) // len(self.names)
        return self.words[line * size : (line + 1) * size]


def _probe(program: Path, folder: Path) -> Probe:
    file = folder / f"{program.name}.bits"
    done = subprocess.run([program, file], capture_output=True, text=True, timeout=300, check=True)
    words = array("I")
    words.frombytes(file.read_bytes())
    return Probe(tuple(line.rpartition(" ")[0] for line in done.stdout.splitlines()), words)


def _difference(real: Probe, emulated: Probe, line: int) -> str:
    """How many words of a line's fragments differ, and the first of them; '' if none does."""
    mine, theirs = emulated.of(line), real.of(line)
    if not (differing := [i for i in range(len(mine)) if mine[i] != theirs[i]]):
        return ""
    fragment, word = divmod(differing[0], sum(WORDS))
    register, lane = divmod(word - sum(WORDS[:-1]), 32)
    return (
        f"{real.names[line]}: {len(differing)} words differ, the first in fragment {fragment}, register d{register}, "
        f"lane {lane}: GPU {theirs[differing[0]]:08x}, emulator {mine[differing[0]]:08x}"
    )


def test_matrix_instructions_give_the_gpus_bits(gpu: CudaEngine, compiled: Callable[..., Path], tmp_path: Path) -> None:
    major, minor = gpu.gpu.compute_capability
    architecture = f"-DPROBE_ARCHITECTURE={major}{minor}"
    real = _probe(compiled(PROBE, architecture), tmp_path)
    flags = ("-O3", "-std=c++17", architecture)
    emulated = _probe(build(PROBE, flags=flags, target=f"sm_{major}{minor}"), tmp_path)
    assert real.names == emulated.names
    wrong = [said for line in range(len(real.names)) if (said := _difference(real, emulated, line))]
    assert not wrong, "\n".join(wrong)


def test_a_million_vectors_of_each_form_give_the_gpus_bits(gpu: CudaEngine, tmp_path: Path) -> None:
    """mma.sync and wgmma, without a program around them."""
    if gpu.gpu.compute_capability != (9, 0):
        pytest.skip("its code is for sm_90a")
    program = build_tensor_bits(tmp_path, gpu=True)
    done = subprocess.run([program, "90", "1000000"], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, "\n".join(line for line in done.stdout.splitlines() if " 0 differ" not in line)
