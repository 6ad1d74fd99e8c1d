"""The line of a submission that a diagnosis speaks of, found in two styles of writing the same kernel."""

from __future__ import annotations

import time

import pytest

from grader.checking.suspects import suspect
from grader.operators.base import Step

ONE_KEY = b"""
__global__ void attention(const float* q, const float* k, const float* v, float* o, int n, int d) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;   // for (a comment) s += exp(k * v)
    const float scale = 1.0f / sqrtf(float(d)); const int b = blockIdx.y; v += b * n * d;
    float m = -INFINITY, l = 0.0f, acc[64] = {0.0f};
    for (int j = 0; j < n; ++j) {
        float s = 0.0f;
        for (int x = 0; x < d; ++x) s += q[row * d + x] * k[j * d + x];
        const float m_new = fmaxf(m, s * scale);
        const float shrink = expf(m - m_new);
        const float p = expf(s * scale - m_new);
        l = l * shrink + p;
        for (int x = 0; x < d; ++x) acc[x] = acc[x] * shrink + p * v[j * d + x];
        m = m_new;
    }
    for (int x = 0; x < d; ++x) o[row * d + x] = acc[x] / l;
}
void run() { attention<<<1, 64>>>(0, 0, 0, 0, 1, 1); fwrite("<<<", 1, 1, 0); }
"""
TILED = b"""
__global__ void __launch_bounds__(1024) attention(const float* q, const float* k, const float* v, float* o, int n) {
    __shared__ float qi[32][64], kj[32][65], vj[32][64], s[32][32];
    qi[ty][tx] = q[(blockIdx.x * 32 + ty) * 64 + tx];
    for (int j0 = 0; j0 < n; j0 += 32) {
        kj[ty][tx] = k[(j0 + ty) * 64 + tx];
        vj[ty][tx] = v[(j0 + ty) * 64 + tx];
        __syncthreads();
        float dot = 0.0f;
        for (int x = 0; x < 64; ++x) dot = fmaf(qi[ty][x], kj[tx][x], dot);
        s[ty][tx] = dot * 0.125f;
        __syncthreads();
        float m_new = m, sum = 0.0f, part = 0.0f;
        for (int j = 0; j < 32; ++j) m_new = max(m_new, s[ty][j]);
        const float shrink = __expf(m - m_new);
        for (int j = 0; j < 32; ++j) sum += __expf(s[ty][j] - m_new);
        l = l * shrink + sum;
        for (int j = 0; j < 32; ++j) part += __expf(s[ty][j] - m_new) * vj[j][tx];
        acc = acc * shrink + part;
        m = m_new;
    }
    o[(blockIdx.x * 32 + ty) * 64 + tx] = acc / l;
}
"""


@pytest.mark.parametrize(
    ("step", "one_key", "tiled"),
    [
        ("scale", "sqrtf(", "dot * 0.125f"),
        ("scores", "s += q[", "dot = fmaf("),
        ("keys", "for (int j = 0", "for (int j0"),
        ("tile", "for (int j = 0", "sum += __expf("),
        ("weight", "p = expf", "sum += __expf("),
        ("rescale", "shrink = expf", "shrink = __expf"),
        ("output_sum", "acc[x] * shrink", "acc * shrink + part"),
        ("total", "l * shrink + p", "l * shrink + sum"),
        ("division", "acc[x] / l", "acc / l"),
        ("store", "o[row * d + x] =", "* 64 + tx] = acc / l"),
        ("load_q", "s += q[", "qi[ty][tx] = q["),
        ("load_k", "s += q[", "kj[ty][tx] = k["),
        ("load_v", "acc[x] * shrink", "vj[ty][tx] = v["),
        ("store_scores", "s += q[", "s[ty][tx] ="),
        ("next_maximum", "m = m_new", "m = m_new"),
        ("batch_of_v", "v += b * n", "vj[ty][tx] = v["),
        ("batch", "v += b * n", "blockIdx.x * 32"),
    ],
)
def test_a_step_is_found_as_a_reader_would_find_it(step: Step, one_key: str, tiled: str) -> None:
    for source, words in ((ONE_KEY, one_key), (TILED, tiled)):
        found = suspect([("hw4.cu", source)], [step])
        assert found is not None and words in found.text, (step, found)


def test_the_program_around_the_kernel_is_found_and_strings_and_comments_are_not() -> None:
    launch, write = (suspect([("hw4.cu", ONE_KEY)], [step]) for step in ("launch", "write"))
    assert launch is not None and write is not None and launch.number == write.number == 18


def test_what_cannot_be_found_is_not_guessed() -> None:
    assert suspect([("hw4.cu", b"int main() { return 0; }\n")], ["output_sum", "row"]) is None
    assert suspect([], ["scale"]) is None
    assert suspect([("hw4.cu", ONE_KEY.replace(b"expf", b"exp2f"))], ["base_two"]) is None  # it is none alone


HELPER = (
    ONE_KEY.replace(b"__global__", b"__device__")
    + b"""
__global__ void all(const float* q) {
    for (int key = 0; key < n; ++key) attention(q);
}
int main() {
    reset<<<1, 32>>>(m, l);
    for (int b = 0; b < batches; ++b) step<<<1, 32>>>(m, l);
}
"""
)
OVERWRITTEN = ONE_KEY.replace(b"const float shrink", b"m = m_new;\n const float shrink")
FIRST_LANE = ONE_KEY.replace(b"l = l * shrink + p", b"if (lane == 0) l = l * shrink + p")


@pytest.mark.parametrize(
    ("source", "step", "words"),
    [
        (HELPER, "reset", "reset<<<"),
        (OVERWRITTEN, "overwritten_maximum", "m = m_new;"),
        (ONE_KEY, "overwritten_maximum", None),
        (FIRST_LANE, "total_of_one", "if (lane == 0) l ="),
        (ONE_KEY, "total_of_one", "l = l * shrink"),
        (b"const int tiles = n / 32;\n" + ONE_KEY.replace(b"j < n", b"j < tiles"), "bound", "tiles = n / 32"),
        (ONE_KEY, "score_start", "float s = 0"),
        (b"count = CHUNK;\nfor (;;) cnt[s] = count;\nfwrite(out, 4, cnt[s], file);\n", "write_count", "= CHUNK"),
    ],
    ids=[
        "set once",
        "overwritten",
        "overwritten at the end",
        "one lane",
        "all lanes",
        "bound",
        "first value",
        "count",
    ],
)
def test_a_mistake_s_own_line_is_found(source: bytes, step: Step, words: str | None) -> None:
    found = suspect([("hw4.cu", source)], [step])
    assert found is None if words is None else found is not None and words in found.text


MERGED = b"""
__device__ void merge(State& st, float score, const float* v) {
    float top = max(st.m, score);
    float p = expf(score - top);
    for (int i = 0; i < d; ++i) st.o[i] += p * v[i];
}
__global__ void all(const float* q, const float* k, const float* v) {
    for (int key = 0; key < n - 1; ++key) merge(st, dot(q, k), v);
}
"""


def test_a_loop_around_a_call_is_the_one_over_the_keys() -> None:
    found = suspect([("hw4.cu", MERGED)], ["keys"])
    assert found is not None and "int key" in found.text


def test_the_only_power_of_two_is_found() -> None:
    found = suspect([("hw4.cu", TILED.replace(b"part += __expf", b"part += exp2f"))], ["base_two", "output_sum"])
    assert found is not None and "part += exp2f" in found.text


def test_a_source_made_to_take_hours_takes_seconds() -> None:
    began = time.monotonic()
    suspect([("hw4.cu", b"/*" * 200_000 + b"a" * 500_000 + b"(" * 500_000)], ["output_sum"])
    assert time.monotonic() - began < 30
