"""cuRAND's device functions: the toolkit's own headers, where they are, give the documented sequences.

The expected numbers are computed here from the published generators, not by cuRAND: XORWOW (Marsaglia 2003) with its
sequences 2^67 steps apart, as powers of its matrix over GF(2), and Philox4x32-10 (Salmon et al. 2011).
"""

import itertools
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from grader.base.verdict import Fault
from grader.course.assignment import Assignment
from grader.programs import toolkit
from grader.programs.build import build
from grader.programs.engine import select_engine
from grader.programs.submission import read_submission
from grader.programs.toolkit import find_toolkit
from tests.support.course import ROOT

DRAW = ROOT / "tests/fixtures/curand/draw.cu"
USES = """
#include <curand_kernel.h>
__global__ void k(curandState *s) { curand_init(1, 2, 3, s); }
int main() { k<<<1, 1>>>(0); }
"""
PACKAGED = """
struct curandState { int x; };
template <class State> __device__ void curand_init(int, int, int, State *state) { state->x = 1; }
"""
NAMES = """
#include <curand_kernel.h>
int main() { curandState *state = nullptr; return state != nullptr; }
"""
SEED = 0x123456789ABCDEF
M32 = (1 << 32) - 1


def xorwow_step(state: int) -> int:
    """The next state: five words of 32 bits, the oldest lowest. Linear over GF(2)."""
    oldest, newest = state & M32, state >> 128
    t = oldest ^ (oldest >> 2)
    word = newest ^ (newest << 4 & M32) ^ t ^ (t << 1 & M32)
    return state >> 32 | word << 128


def xorwow(seed: int, sequence: int, offset: int) -> Iterator[int]:
    s0, s1 = seed & M32 ^ 0xAAD26B49, seed >> 32 ^ 0xF7DCEFDD  # cuRAND's scrambling of the seed (curand_kernel.h)
    t0, t1 = 1099087573 * s0 & M32, 2591861531 * s1 & M32
    weyl = 6615241 + t1 + t0 & M32
    words = (123456789 + t0, 362436069 ^ t0, 521288629 + t1, 88675123 ^ t1, 5783321 + t0)
    state = sum((word & M32) << 32 * i for i, word in enumerate(words))
    jump = [xorwow_step(1 << bit) for bit in range(160)]  # columns of the matrix
    for _ in range(67):
        jump = [applied(jump, column) for column in jump]
    for _ in range(sequence):
        state = applied(jump, state)  # the Weyl sequence adds 2^67 times the same: nothing, modulo 2^32
    for position in itertools.count():
        state, weyl = xorwow_step(state), weyl + 362437 & M32
        if position >= offset:
            yield (state >> 128) + weyl & M32


def applied(columns: list[int], vector: int) -> int:
    result = 0
    for bit in range(160):
        if vector >> bit & 1:
            result ^= columns[bit]
    return result


def philox(seed: int, sequence: int, offset: int) -> Iterator[int]:
    for position in itertools.count(offset):
        number, place = divmod(position, 4)
        c0, c1, c2, c3 = number & M32, number >> 32, sequence & M32, sequence >> 32
        k0, k1 = seed & M32, seed >> 32
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & M32, p0 >> 32 ^ c3 ^ k1, p0 & M32
            k0, k1 = k0 + 0x9E3779B9 & M32, k1 + 0xBB67AE85 & M32
        yield (c0, c1, c2, c3)[place]


def has_curand() -> bool:
    found = find_toolkit()
    return bool(found.added_headers) or (found.include / "curand_kernel.h").is_file()


def test_who_writes_the_name_of_a_missing_function_blames_nobody_else(tmp_path: Path, rules: Assignment) -> None:
    (tmp_path / "uses.cu").write_text("int main() { return grader_lacks_curand::curand_init; }\n")
    made = build(read_submission(tmp_path / "uses.cu", rules), rules, select_engine("emulator", "sm_80"))
    assert made.fault is Fault.STUDENT


@pytest.mark.skipif(not has_curand(), reason="no curand_kernel.h: pip install nvidia-curand")
def test_sequences_and_moments_are_those_of_the_published_generators(rules: Assignment) -> None:
    made = build(read_submission(DRAW, rules), rules, select_engine("auto", "sm_80"))
    assert made.program is not None, made.log
    said = subprocess.run([made.program], capture_output=True, text=True, check=True).stdout.split("\n")
    for row, generator in ((0, xorwow), (3, philox)):
        for sequence in range(3):
            name, thread, *numbers = said[row + sequence].split()
            expected = generator(SEED, sequence, 5)
            assert (name, int(thread)) == (generator.__name__, sequence)
            assert [int(number) for number in numbers[:6]] == [next(expected) for _ in range(6)]
            assert float(numbers[6]) == pytest.approx((next(expected) + 0.5) / 2**32, rel=1e-6)
    for line in said[6:9]:
        uniform, normal, square, outside = map(float, line.split()[2:])
        assert uniform == pytest.approx(0.5, abs=0.01) and normal == pytest.approx(0, abs=0.03)
        assert square == pytest.approx(1, abs=0.04) and outside == 0
    assert said[8].startswith("mrg32k3a")


@pytest.mark.skipif((find_toolkit().include / "curand_kernel.h").is_file(), reason="this toolkit has cuRAND")
@pytest.mark.parametrize("package", [True, False])
def test_without_the_header_one_sentence_says_where_to_get_it(
    package: bool, tmp_path: Path, rules: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "site" / "nvidia" / "cu13" / "include"
    include.mkdir(parents=True)
    (include / "curand_kernel.h").write_text(PACKAGED)
    monkeypatch.setattr(toolkit, "pypi_roots", lambda: (include.parent,) if package else ())
    (tmp_path / "uses.cu").write_text(USES)
    made = build(read_submission(tmp_path / "uses.cu", rules), rules, select_engine("emulator", "sm_80"))
    if package:
        assert made.ok, made.log
    else:
        assert made.fault is Fault.MACHINE
        assert made.reason == (
            "Its kernels call curand_init of cuRAND, but this machine's CUDA toolkit has no curand_kernel.h: install "
            "it with `pip install nvidia-curand`, or use a full toolkit (NVCC=…/bin/nvcc)."
        )


def test_a_program_that_only_names_a_state_needs_no_curand(tmp_path: Path, rules: Assignment) -> None:
    (tmp_path / "named.cu").write_text(NAMES)
    assert build(read_submission(tmp_path / "named.cu", rules), rules, select_engine("emulator", "sm_80")).ok
