"""The smallest input on which a wrong program errs, found by experiments with programs written in numpy."""

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.base.progress import Progress
from grader.checking.probes.smallest import smallest_input
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, ensure
from grader.course.testcase import load_suite
from grader.cpp.solve import left_out, main_line
from grader.findings import sentence
from grader.grading import probing
from grader.grading.probing import by_probes
from grader.operators import load_operator
from grader.programs.build import Build
from grader.sandbox import budget

Array = NDArray[Any]
RANDOM = np.random.default_rng(1)
FLOATS = RANDOM.uniform(0.5, 1, 1000).astype(np.float32).reshape(-1, 1)
INTEGERS = RANDOM.integers(-100, 100, 1000).astype(np.int32).reshape(-1, 1)
INTEGERS[0] = 7
BYTES = RANDOM.integers(1, 256, 1000).astype(np.uint8).reshape(-1, 1)
BYTES[768] = 9
P = np.array([0, 2, 2, 5], np.int32).reshape(-1, 1)
OUTPUTS = {"spmv": np.float32, "histogram": np.int32}
J = np.array([1, 3, 0, 1, 2], np.int32).reshape(-1, 1)


def scan_of_blocks(x: Array) -> Array:
    return np.concatenate([np.cumsum(x[first : first + 256]) for first in range(0, len(x), 256)]).reshape(-1, 1)


def spmv(p: Array, j: Array, v: Array, x: Array, late: int) -> Array:
    ends = np.maximum(p[1:, 0], p[:-1, 0] + late)
    rows = [(v[a:b, 0] * x[j[a:b, 0], 0]).sum() for a, b in zip(p[:-1, 0], ends, strict=True)]
    return np.array(rows, np.float32).reshape(-1, 1)


@pytest.mark.parametrize(
    ("operator", "shape", "tensors", "program", "said"),
    [
        ("reduction", (1000,), [FLOATS], lambda x: x[:992].sum().reshape(1, 1),
         "X[992] is missing in S. With only X[992] = 0.681666, and all else in X 0, S is 0, expected 0.681666. "
         "The first 992 values of X do no harm."),
        ("scan", (1000,), [INTEGERS], scan_of_blocks,
         "X[0] is missing in Y[256] to Y[999]. With only X[0] = 7, and all else in X 0, Y[256] is 0, expected 7."),
        ("scan", (1000,), [INTEGERS], lambda x: np.cumsum(x).reshape(-1, 1) - x,
         "X[0] is missing in Y[0]. With only X[0] = 7, and all else in X 0, Y[0] is 0, expected 7."),
        ("transpose", (20, 50), [FLOATS.reshape(20, 50)], lambda a: a.reshape(50, 20),
         "A[0, 1] counts in T[0, 1], but belongs in T[1, 0]."),
        ("saxpy", (1000, 3.0), [FLOATS, FLOATS[::-1].copy()], lambda x, y: 3 * (x + y),
         "Y[0] counts 3 times in Z[0]. With only Y[0] = "),
        ("saxpy", (1000, 1.0), [FLOATS, FLOATS], lambda x, y: x * 1.0003 + y,
         "With only X[0] = 0.755911, and all else in X and Y 0, Z[0] is 0.756138, expected 0.755911."),
        ("saxpy", (1000, 3.0), [FLOATS, FLOATS], lambda x, y: 3 * x + y + 1,
         "With nothing but zeros in X and Y, Z[0] is 1, expected 0."),
        ("histogram", (1000,), [BYTES], lambda x: np.bincount(x[:768, 0], minlength=256).reshape(-1, 1),
         "X[768] is missing in H[0] and 1 other. With only X[768] = 9, and all else in X 0, H[0] is 768, expected "),
        ("spmv", (3, 4, 5), [P, J, FLOATS[:5], FLOATS[5:9]], lambda p, j, v, x: spmv(p, j, v, x, 1),
         "V[2] counts in Y[1], where it does not belong. With only V[2] = "),
    ],
)  # fmt: skip
def test_it_says_which_value_goes_where(
    operator: str, shape: tuple[int | float, ...], tensors: list[Array], program: Callable[..., Array], said: str
) -> None:
    def run(given: Sequence[Array]) -> list[Array]:
        return [program(*given).astype(OUTPUTS.get(operator, tensors[0].dtype))]

    found = smallest_input(load_operator(operator), shape, 1e-4, tensors, run)
    assert found is not None and sentence(found).startswith(said)


@pytest.mark.parametrize("ends", [1, 3])
def test_a_race_has_no_smallest_input(ends: int) -> None:
    """A histogram that loses other counts in each run, from the first run or from the third."""
    runs = 0

    def run(given: Sequence[Array]) -> list[Array]:
        nonlocal runs
        runs += 1
        counts = np.bincount(given[0][:, 0], minlength=256).astype(np.int32).reshape(-1, 1)
        counts[0] -= runs % 3 if runs >= ends else 1
        return [counts]

    assert smallest_input(load_operator("histogram"), (1000,), 0.0, [BYTES], run) is None


def test_a_factor_is_claimed_only_where_half_of_the_value_counts_as_often() -> None:
    found = smallest_input(load_operator("saxpy"), (1000, 1.0), 1e-6, [FLOATS, FLOATS], lambda t: [t[0] ** 2 + t[1]])
    assert found is not None and sentence(found).startswith("With only X[0] = 0.755911, ")


def test_a_right_program_and_one_without_output_say_nothing() -> None:
    operator = load_operator("reduction")
    assert smallest_input(operator, (1000,), 1e-2, [FLOATS], lambda given: [given[0].sum().reshape(1, 1)]) is None
    assert smallest_input(operator, (1000,), 1e-2, [FLOATS], lambda given: None) is None


SOURCE = b"""\
__global__ void add(const float* x, float* sum, int n) {
    const int i = threadIdx.x;
    float mine = x[i];
    mine *= 2;
    sum[i] = mine;
}
extern "C" void solve(const float* X, float* Y, int n) {
    add<<<1, n>>>(X, Y, n);
}
"""


def line_of(text: bytes, parameter: int, *, writes: bool) -> int | None:
    found = main_line([("a.cu", text)], parameter, "writes" if writes else "reads")
    return found.line if found is not None else None


def test_an_output_that_differs_from_run_to_run_shows_nothing() -> None:
    runs = itertools.count()
    run = lambda _: [np.full((256, 1), next(runs), np.int32)]  # noqa: E731
    assert smallest_input(load_operator("histogram"), (1000,), 1e-4, [BYTES], run) is None


def test_lines_that_read_and_write_an_array_of_solve() -> None:
    assert line_of(SOURCE, 0, writes=False) == 3
    assert line_of(SOURCE, 1, writes=True) == 4  # the line that computes what line 5 stores
    assert line_of(SOURCE, 9, writes=True) is None


def test_a_kernel_that_is_never_launched_is_named_if_it_is_the_only_one() -> None:
    other = b"__global__ void more(float* y) { y[0] = 1; }\n"
    found = left_out([("a.cu", SOURCE + other)])
    assert found is not None and (found.name, found.line) == ("more", 10)
    assert left_out([("a.cu", SOURCE)]) is None
    assert left_out([("a.cu", SOURCE + other + other.replace(b"more", b"less"))]) is None


def test_lines_are_found_through_the_pointers_that_take_turns() -> None:
    text = SOURCE.replace(b"    add<<<1, n>>>(X, Y, n);\n", b"""\
    const float* from = X;
    for (int s = 0; s < n; s++) {
        float* const to = (n - s) % 2 ? Y : other;
        add<<<1, n>>>(from, to, n);
        from = to;
    }
""")  # fmt: skip
    assert line_of(text, 0, writes=False) == 3
    assert line_of(text, 1, writes=True) == 4


def test_a_program_that_sleeps_does_not_stretch_the_search(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nor does what the grader does after each run, such as reading a long trace: the search ends by wall time too."""
    rules, now = load_assignment("reduction"), [0.0]
    suite, files = load_suite(rules.testcases_file), TestcaseFiles(tmp_path)
    cases = suite.select("s03")
    ensure(cases, suite, files)

    @contextlib.contextmanager
    def run_of(*_: object) -> Iterator[SimpleNamespace]:
        now[0] += probing.PROBE_LIMIT_S * probing.WALL_PER_CPU_S - 1
        (tmp_path / "output").write_bytes(np.float32(1e9).tobytes())
        yield SimpleNamespace(outcome=SimpleNamespace(wall_s=0.1, cpu_s=0.0), output=tmp_path / "output")

    monkeypatch.setattr(probing, "_run_of", run_of)
    monkeypatch.setattr(budget, "time", SimpleNamespace(monotonic=lambda: now[0]))
    engine = SimpleNamespace(measures_time=False)
    grading: Any = SimpleNamespace(engine=engine, files=files, assignment=rules, bench=None)
    submission: Any = SimpleNamespace(is_python=False, files=())
    by_probes(grading, submission, cast(Build, SimpleNamespace(program=tmp_path)), cases, (), Progress())
    assert 0 < now[0] <= 2 * probing.EXPERIMENTS_S * probing.WALL_PER_CPU_S
