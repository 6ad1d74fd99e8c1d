"""Mistakes that a source shows by itself are found at their own lines, and none in right programs."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from grader.checking import slips
from grader.checking.slips import Which, find_slip
from grader.sandbox.bounded import Bounded
from tests.support.course import ROOT

KERNEL = """
__global__ void attention(const float* q, const float* k, const float* v, float* o, int n, int d) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float m = -INFINITY;
    float l = 0.0f, acc[64];
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[row * d + x] * k[j * d + x];
        s /= sqrtf(float(d));
        const float m_new = fmaxf(m, s);
        const float shrink = expf(m - m_new);
        const float p = expf(s - m_new);
        l = l * shrink + p;
        for (int x = 0; x < d; ++x) acc[x] = acc[x] * shrink + p * v[j * d + x];
        m = m_new;
    }
    for (int x = 0; x < d; ++x) o[row * d + x] = acc[x] / l;
}
"""
HOST = """
int main() {
    fread(&batches, 4, 1, file);
    fread(&n, 4, 1, file);
    fread(&d, 4, 1, file);
    const size_t count = (size_t)n * d;
    cudaMalloc(&dev, count * sizeof(float));
    cudaMemcpy(dev, host, count * sizeof(float), cudaMemcpyHostToDevice);
    attention<<<n / 64, 64>>>(dev, dev, dev, out, n, d);
    cudaMemcpy(host, out, count * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
TILES = """
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.x * 16 + ty;
    for (int h = 16 / 2; h > 0; h /= 2) red[ty][tx] += red[ty][tx + h];
    const float p = expf(red[ty][tx] - m);
    weights[ty][tx] = p;
    for (int h = 16 / 2; h > 0; h /= 2) red[ty][tx] += red[ty][tx + h];
    for (int j = 0; j < 16; ++j) sum += weights[ty][j] * values[j][tx];
"""
PROGRAM = KERNEL + HOST


def slip_in(source: str, which: Which = "all") -> str:
    return str(find_slip([("hw4.cu", source.encode())], which) or "")


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("float s = 0", "int s = 0", "`s` is an integer, so it loses every fraction"),
        ("float l = 0", "int l = 0", "`l` is an integer"),
        ("m = -INFINITY", "m = FLT_MAX", "`m` starts at FLT_MAX"),
        ("fmaxf(m, s)", "fminf(m, s)", "keeps the smaller number"),
        ("expf(m - m_new)", "expf(m_new - m)", "the correction is exp(m − m_new)"),
        ("expf(s - m_new)", "expf(m_new - s)", "exp(m_new − s) has the maximum first"),
        ("expf(s - m_new)", "expf(s - m)", "relative to the maximum before this step"),
        ("x < d; ++x) s", "x < 32; ++x) s", "ends at 32, while others end at `d`"),
        ("    fread(&n, 4, 1, file);\n", "", ""),
        (
            "fread(&n, 4, 1, file);\n    fread(&d",
            "fread(&d, 4, 1, file);\n    fread(&n",
            "`d` is its third number, and is read as number 2",
        ),
        ("count * sizeof(float), cudaMemcpyH", "count, cudaMemcpyH", "cudaMemcpy takes a size in bytes"),
        ("s /= sqrtf(float(d))", "s *= powf(d, -1 / 2)", "1 / 2 divides integers"),
        ("if (row >= n) return;", "if (row >= n) return; int b = row / n;", "`row / n` is always 0"),
    ],
)
def test_a_slip_is_named_at_its_own_line(right: str, wrong: str, words: str) -> None:
    assert right in PROGRAM
    said = slip_in(PROGRAM.replace(right, wrong, 1))
    assert words in said if words else said == ""
    if words:
        own = wrong.rpartition("\n")[0] or wrong
        assert own.strip()[:30] in said.partition(" Look at ")[2]


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("sum += weights[ty]", "sum += weights[tx]", "`weights` is written at [ty] and read at [tx]"),
        ("weights[ty][tx] = p", "weights[tx][ty] = p", "`weights` is written at [tx] and read at [ty]"),
        ("h > 0", "h > 1", "stops before `h` is 1"),
        ("16 / 2", "16 / 4", "begins with steps of 16 / 4 (4) and another one with 8"),
    ],
)
def test_slips_with_tiles_and_reductions(right: str, wrong: str, words: str) -> None:
    assert slip_in(TILES) == ""
    said = slip_in(TILES.replace(right, wrong, 1))
    assert words in said and wrong in said


def test_a_copy_before_the_launch_is_found() -> None:
    lines = HOST.splitlines(keepends=True)
    launch = next(line for line in lines if "<<<" in line)
    late = "".join(line for line in lines if line is not launch).replace("\n}", f"\n{launch}}}")
    assert "before the kernel is launched (line 10)" in slip_in(late, "host")


def test_right_programs_have_no_slips() -> None:
    programs = [*(ROOT / "reference").glob("*/*.cu"), *(ROOT / "tests/honest").glob("*/*.cu")]
    assert len(programs) > 50
    assert {path.name: slip for path in programs if (slip := find_slip(with_headers(path), "all"))} == {}


def test_the_mistakes_of_wrong_programs_are_not_mistaken_for_slips() -> None:
    programs = (ROOT / "reference").glob("*/wrong/*.cu")
    found = {path.stem for path in programs if find_slip(with_headers(path), "all")}
    assert found == {"max_starts_at_infinity"}


def with_headers(path: Path) -> list[tuple[str, bytes]]:
    """A program's files, as they are submitted."""
    found, left = dict[Path, bytes](), [path]
    while left:
        if (file := left.pop()).is_file() and file not in found:
            found[file] = file.read_bytes()
            left += [(file.parent / name).resolve() for name in re.findall(r'#include "(.+)"', file.read_text())]
    return [(file.name, content) for file, content in found.items()]


def test_a_source_made_to_take_hours_is_searched_once_for_all_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slips, "_examiner", Bounded(wall_s=1, memory_bytes=1 << 30))
    hostile = [("hw4.cu", b"__global__ void f() {\n" + b"for (" * 300 + (b"\n" + b"for (" * 300) * 3900)]
    began = time.monotonic()
    assert [find_slip(hostile, "sure") for _ in range(20)] == [None] * 20
    assert time.monotonic() - began < 10
