"""Mistakes that a source shows by itself are found at their own lines, and none in right programs."""

import re
import time
from pathlib import Path

import pytest

from grader.checking.slips import find_slip
from grader.findings import sentence
from tests.support.course import ROOT

KERNEL = """
__global__ void attention(const float* q, const float* k, const float* v, float* o, int n, int d) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    float m = -INFINITY;
    float l = 0.0f, acc[64];
    const float scale = powf(d, -1.0 / 2);
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[row * d + x] * k[j * d + x];
        s *= scale;
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
    float *dev, *out;
    const size_t count = (size_t)n * d;
    cudaMalloc(&dev, count * sizeof(float));
    cudaMemcpy(dev, host, count * sizeof(float), cudaMemcpyHostToDevice);
    attention<<<n / 64, 64>>>(dev, dev, dev, out, n, d);
    cudaMemcpy(host, out, count * sizeof(float), cudaMemcpyDeviceToHost);
}
"""
PROGRAM = KERNEL + HOST


def slip_in(source: str) -> str:
    found = find_slip([("hw4.cu", source.encode())])
    lines = source.splitlines()
    return sentence(found, lambda _, line: lines[line - 1]) if found is not None else ""


@pytest.mark.parametrize(
    ("right", "wrong", "words"),
    [
        ("float s = 0.0f", "int s = 0", "`s` is an integer, so it loses every fraction"),
        ("m = -INFINITY", "m = FLT_MAX", "`m` starts at FLT_MAX"),
        ("count * sizeof(float), cudaMemcpyH", "n * d, cudaMemcpyH", "cudaMemcpy takes a size in bytes"),
        ("-1.0 / 2", "-1 / 2", "1 / 2 divides integers"),
        ("powf(d, -1.0 / 2)", "1 / d", "1 / d divides integers"),
        ("if (row >= n) return;", "if (row >= n) return; int b = row / n;", "`row / n` is always 0"),
    ],
)
def test_a_slip_is_named_at_its_own_line(right: str, wrong: str, words: str) -> None:
    assert right in PROGRAM
    assert slip_in(PROGRAM) == ""
    said = slip_in(PROGRAM.replace(right, wrong, 1).replace("int main() {", "int main(int n, int d) {"))
    assert words in said
    assert wrong[:30] in said.partition(" Look at ")[2]


RIGHT = {
    "the tile's maximum beside the running one": """
        __global__ void f(float* m, float* l, float* s, float* acc) {
            float mij = -INFINITY;
            for (int j = 0; j < 32; ++j) mij = fmaxf(mij, s[j]);
            const float mi_new = fmaxf(m[threadIdx.x], mij);
            const float lij = expf(s[0] - mij);
            l[threadIdx.x] = expf(m[threadIdx.x] - mi_new) * l[threadIdx.x] + expf(mij - mi_new) * lij;
            m[threadIdx.x] = mi_new;
        }""",
    "a rescaling with the maximum first": """
        __global__ void f(const float* s, float* o, float m_prev, float m) {
            float row_max = fmaxf(m_prev, s[0]);
            o[0] = o[0] * __expf(m_prev - row_max) + __expf(m - row_max);
        }""",
    "a transpose": """
        __global__ void transpose(const float* a, float* b, int n) {
            __shared__ float tile[32][33];
            int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
            tile[threadIdx.y][threadIdx.x] = a[y * n + x];
            __syncthreads();
            x = blockIdx.y * blockDim.y + threadIdx.x;
            y = blockIdx.x * blockDim.x + threadIdx.y;
            b[y * n + x] = tile[threadIdx.x][threadIdx.y];
        }""",
    "bytes of a 16-bit type": """
        void f(int count) {
            __half *q; unsigned short *k; float *other;
            cudaMalloc(&q, 2 * count);
            cudaMalloc(&k, 2 * count);
            cudaMalloc(&other, count * sizeof(float));
            cudaMemcpy(q, k, 2 * count, cudaMemcpyHostToDevice);
        }""",
    "reductions over other widths": """
        __global__ void f(float x, float* o) {
            for (int k = 16; k > 0; k /= 2) x += __shfl_xor_sync(~0u, x, k);
            for (int k = 4; k > 0; k >>= 1) x += __shfl_xor_sync(~0u, x, k);
        }""",
    "whole numbers that stay whole": "int f(int n) { int half = 5 / 2; return half + n / 3; }",
}


@pytest.mark.parametrize("source", RIGHT.values(), ids=RIGHT)
def test_right_code_that_was_once_accused_is_not(source: str) -> None:
    assert slip_in(source) == ""


@pytest.mark.usefixtures("hurried_room")
def test_a_source_made_to_take_long_is_given_up() -> None:
    chain = "".join(f"  int a{i} = {' * '.join(f'a{k}' for k in range(60))};\n" for i in range(60) for _ in range(8))
    calls = "  cudaMalloc(&p, a1 * a2);\n" * 4000
    began = time.process_time()
    assert find_slip([("hw4.cu", f"int main() {{\n  float *p;\n{chain}{calls}}}\n".encode())]) is None
    assert time.process_time() - began < 2, "it is read in a process of its own"


def test_right_programs_have_no_slips() -> None:
    programs = [*(ROOT / "reference").glob("*/*.cu"), *(ROOT / "tests/honest").glob("*/*.cu")]
    assert len(programs) > 50
    assert {path.name: slip for path in programs if (slip := find_slip(with_headers(path)))} == {}


def test_the_mistakes_of_wrong_programs_are_not_mistaken_for_slips() -> None:
    programs = (ROOT / "reference").glob("*/wrong/*.cu")
    assert {path.stem for path in programs if find_slip(with_headers(path))} == set()


def with_headers(path: Path) -> list[tuple[str, bytes]]:
    """A program's files, as they are submitted."""
    found, left = dict[Path, bytes](), [path]
    while left:
        if (file := left.pop()).is_file() and file not in found:
            found[file] = file.read_bytes()
            left += [(file.parent / name).resolve() for name in re.findall(r'#include "(.+)"', file.read_text())]
    return [(file.name, content) for file, content in found.items()]
