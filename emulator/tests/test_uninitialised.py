"""Forty uninitialised reads are found with all checks and by that of initialisation alone."""

import re
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, build, execute

SOURCE = HERE / "uninitialised" / "reads.cu"
LINES = {
    found[1]: number
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
    if (found := re.match(r"READ\((\w+)", line))
}


def test_there_are_forty() -> None:
    assert len(LINES) == 40


@pytest.mark.parametrize("name", LINES)
def test_an_uninitialised_read_is_found_by_all_checks_and_by_init_alone(name: str, tmp_path: Path) -> None:
    program = build(SOURCE, watch=True)
    everything = execute(program, name, folder=tmp_path)
    alone = execute(program, name, folder=tmp_path, GRADER_EMULATOR_CHECKS="memory,sync,init")
    assert everything.exit_code == 0
    assert {found["line"] for found in alone.findings()} == {LINES[name]}
    assert alone.findings() == everything.findings("init")


def test_words_that_the_compiler_reads_beside_those_of_the_program_are_none(tmp_path: Path) -> None:
    """nvcc joins loads of four neighbouring words with an odd row length to aligned ones, which take padding along."""
    (tmp_path / "rows.cu").write_text("""
__global__ void sums(float* out) {
    extern __shared__ float rows[];
    for (int t = threadIdx.x; t < 32 * 64; t += 16) rows[t / 64 * 65 + t % 64] = t % 7;
    __syncthreads();
    float sum[4] = {};
#pragma unroll 8
    for (int x = 0; x < 32; x++) {
        float a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = rows[x * 65 + 4 * threadIdx.x + i];
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] += a[i] * x;
    }
    for (int i = 0; i < 4; i++) out[4 * threadIdx.x + i] = sum[i];
}
int main() {
    float* out;
    cudaMalloc(&out, 64 * sizeof(float));
    sums<<<1, 16, 32 * 65 * sizeof(float)>>>(out);
    return cudaDeviceSynchronize();
}
""")
    run = execute(build(tmp_path / "rows.cu", watch=True), folder=tmp_path)
    assert run.exit_code == 0
    assert run.findings() == []
