"""whole_program.cuh, what the fast model solutions have around their kernels, with a kernel that copies Q to O."""

import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from tests.support.command_line import Said, grader
from tests.support.course import ROOT

PROGRAM = """
#define ATTENTION_CHUNK_BYTES 100000    // two batches of 128 x 32
#include "whole_program.cuh"
namespace copying {
__global__ void copy(const float* input, float* output, size_t matrix) {
    for (size_t i = threadIdx.x; i < matrix; i += blockDim.x)
        output[blockIdx.x * matrix + i] = input[3 * blockIdx.x * matrix + i];
}
size_t workspace_bytes(int batches, int, int) { return size_t(batches) * 256; }
cudaError_t launch(const Problem& problem) {
    copy<<<problem.batches, 128, 0, problem.stream>>>(problem.input, problem.output,
                                                      size_t(problem.rows) * problem.dim);
    return cudaGetLastError();
}
}
ATTENTION_PROGRAM(copying)
"""


@dataclass(frozen=True)
class Program:
    """The program's source, and a folder for its files."""

    source: Path
    folder: Path

    def run(self, *arguments: Path) -> Said:
        return grader("run", "--engine", "emulator", self.source, *arguments)


@pytest.fixture
def program(tmp_path: Path) -> Program:
    source = tmp_path / "source" / "copying.cu"
    source.parent.mkdir()
    source.write_text(PROGRAM)
    shutil.copy(ROOT / "reference/hw4/whole_program.cuh", source.parent)
    return Program(source, tmp_path)


def attention_input(path: Path, batches: int, rows: int, dim: int) -> np.ndarray:
    """Writes an input file and returns its numbers as [B, 3, N, d]."""
    numbers = np.random.default_rng(batches).uniform(-3, 3, (batches, 3, rows, dim)).astype("<f4")
    path.write_bytes(struct.pack("<3i", batches, rows, dim) + numbers.tobytes())
    return numbers


@pytest.mark.parametrize("batches", [1, 2, 3, 6, 7, 16])
def test_every_batch_comes_out_once_and_in_its_place_whatever_the_number_of_chunks(
    batches: int, program: Program
) -> None:
    numbers = attention_input(program.folder / "in", batches, 128, 32)
    (program.folder / "out").write_bytes(b"what was there before" * 100_000)
    said = program.run(program.folder / "in", program.folder / "out")
    assert said.code == 0, said.err
    output = np.fromfile(program.folder / "out", "<f4")
    assert output.size == batches * 128 * 32
    assert np.array_equal(output.reshape(batches, 128, 32), numbers[:, 0])


@pytest.mark.parametrize(
    ("content", "said_about_it"),
    [
        (b"", "too short for the header B N d (12 bytes)"),
        (b"\x02\x00\x00\x00\x80", "too short for the header B N d (12 bytes)"),
        (struct.pack("<3i", 2, 128, 32), "12 bytes; B=2 N=128 d=32 needs 98316"),
        (struct.pack("<3i", 2, 128, 32) + bytes(98305), "98317 bytes; B=2 N=128 d=32 needs 98316"),
        (struct.pack("<3i", 2, 128, 48), "B=2 N=128 d=48; expected B >= 1, N a power of two"),
        (struct.pack("<3i", 2, 192, 32), "B=2 N=192 d=32; expected B >= 1, N a power of two"),
        (struct.pack("<3i", 2, 65536, 32), "B=2 N=65536 d=32; expected B >= 1, N a power of two"),
        (struct.pack("<3i", -2, 128, 32), "B=-2 N=128 d=32; expected B >= 1, N a power of two"),
    ],
)
def test_a_bad_input_is_named_with_what_was_expected_and_leaves_no_output(
    content: bytes, said_about_it: str, program: Program
) -> None:
    path = program.folder / "bad"
    path.write_bytes(content)
    said = program.run(path, program.folder / "out")
    assert said.code == 1
    assert f"hw4: {path}: {said_about_it}" in said.err
    assert not (program.folder / "out").exists()


def test_files_that_cannot_be_opened_are_named_with_the_reason(program: Program) -> None:
    missing = program.folder / "missing"
    said = program.run(missing, program.folder / "out")
    assert (said.code, f"hw4: {missing}: No such file or directory" in said.err) == (1, True)

    attention_input(program.folder / "in", 2, 128, 32)
    nowhere = program.folder / "no folder" / "out"
    said = program.run(program.folder / "in", nowhere)
    assert (said.code, f"hw4: {nowhere}: No such file or directory" in said.err) == (1, True)

    said = program.run(program.folder, program.folder / "out")
    assert (said.code, f"hw4: {program.folder}: is not a regular file" in said.err) == (1, True)


def test_without_two_files_it_says_how_it_is_called(program: Program) -> None:
    said = program.run(program.folder / "in")
    assert said.code == 2
    assert "INPUT OUTPUT" in said.err
