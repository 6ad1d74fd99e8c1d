"""The changes that are tried on a wrong program, the program that has them all, and what is said of one that helps."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from grader.checking.repairs.changes import PRIOR, _of_number
from grader.checking.repairs.schemata import Change, Schemata, schemata
from grader.checking.repairs.scopes import WHOLE
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, ensure
from grader.course.testcase import load_suite
from grader.findings import Finding, sentence
from grader.grading import repairing
from grader.programs.submission import read_submission
from grader.sandbox import Job, Limits, Outcome
from tests.support.command_line import grader

KERNELS = """\
struct Shape { int rows, columns; float scale; }; enum { kStep = 16 };
constexpr int kTile = 32; static int of_the_host;
template <int W> __global__ void attention(const float* in, float* out, Shape shape, int n, int d) {
    const int w = W + 1; __shared__ float tile[kTile][w]; switch (W) { case 8 * 4: break; }
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row + kStep >= n && d > 0) return;
    const float* key = in + row * d;
    const float* value = in + n * d;
    float top = 0.0f, sum = 0.0f, acc = 0.0f;
    for (int j = 0; j < n - kTile; j += kTile) {
        float s = rsqrtf((float)d) * key[j * d + row];
        const float fix = expf(top - s);
        sum = sum * fix + expf(s);
        acc += tile[threadIdx.x][j] * value[row + j * d];
        atomicAdd(&out[threadIdx.x / 2], s);
    }
    out[row * n + d] = acc / sum;
    out[0] = top + sum;
}
void run(const float* in, float* out, Shape shape, int n, int d) {
    const int groups = n / kTile; out[n] = 0.0f;
    cudaMemcpy(out, in, n * d, cudaMemcpyHostToDevice);
    attention<8><<<groups, kTile>>>(in, out, shape, n, d);
}
"""
FILES = (("hw4.cu", KERNELS.encode()),)


@pytest.fixture(scope="module")
def made() -> Schemata:
    """All changes that can be tried at once, with every line suspected in turn."""
    return schemata(FILES, ())


def tried(line: int) -> set[str]:
    return {each.new for each in schemata(FILES, ()).tries if each.line == line}


@pytest.mark.parametrize(
    ("line", "new"),
    [
        (5, "blockIdx.x * gridDim.x + threadIdx.x"),  # another size
        (6, "row + kStep > n"),  # a comparison
        (7, "in + n * d"),  # the offset of another pointer
        (9, "-INFINITY"),  # where a maximum starts
        (10, "j <= n - kTile"),
        (11, "(rsqrtf((float)d) * key[j * d + row]) * shape.scale"),  # a number of the parameters
        (14, "tile[j][threadIdx.x]"),
        (14, "j - 1"),  # the element before
        (17, "row * n - d"),  # the neighbour on the other side
        (14, "j * d + row"),  # an index that the function uses elsewhere
        (17, "d * n + row"),
        (21, "(n + kTile - 1) / kTile"),
        (22, "(n * d) * sizeof(float)"),
    ],
)
def test_what_is_tried_at_a_line(line: int, new: str) -> None:
    assert new in tried(line)


@pytest.mark.parametrize("line", [1, 2, 4])
def test_nothing_is_tried_where_the_compiler_needs_the_value(line: int) -> None:
    assert not tried(line)


def test_places_are_left_alone_and_neither_host_nor_device_gets_names_of_the_other(made: Schemata) -> None:
    assert not [each for each in made.tries if ("Idx" if each.line > 18 else "of_the_host") in each.new]
    assert not {each.old for each in made.tries if each.line in (15, 17)} & {"out[threadIdx.x / 2]", "out[row * n + d]"}


def test_suspected_lines_come_first_and_lines_that_do_not_compile_are_left_out(made: Schemata) -> None:
    assert [each.number for each in made.tries] == list(range(1, len(made.tries) + 1))
    seen = Finding(kind="repaired", file="hw4.cu", line=18)
    assert [each.line for each in repairing.likeliest_first(made.tries, [seen])][:2] == [18, 18]
    named = Finding(kind="not_rescaled", file="hw4.cu", line=13, array="O", certainty=0.9)
    kinds = {each.kind for each in repairing.likeliest_first(made.tries, [named])}
    assert "comparison" in kinds and not kinds & {"name", "factor"}
    assert 18 in {each.line for each in made.tries}.difference(
        each.line for each in schemata(FILES, {("hw4.cu", 18)}).tries
    )


def test_the_lines_of_the_source_keep_their_numbers(made: Schemata) -> None:
    (_, text), *_ = made.files
    body = text.partition("#line 1\n")[2]
    assert len(body.split("\n")) == len(KERNELS.split("\n"))
    assert "attention<8><<<" in body.split("\n")[22]


def test_a_power_of_two_is_first_doubled_and_halved() -> None:
    others = {text: [new for _, new in _of_number(text, WHOLE)] for text in ("16", "12", "0")}
    assert others == {"16": ["32", "8", "17", "15"], "12": ["11", "13", "6", "24"], "0": ["1"]}


def test_every_kind_of_change_has_words() -> None:
    for how in PRIOR:
        words = {"how": how, "old": "OLD", "new": "NEW"}
        said = sentence(Finding(kind="repaired", file="a.cu", line=3, values={"samples": 8}, words=words))
        assert said.startswith("a.cu:3: ")
        assert ("NEW" in said) or ("OLD" in said)
        assert "8 samples" in said


SCATTERED = """\
__global__ void saxpy(const float* x, const float* y, float* z, int n, float a) {
    const int i = blockIdx.x * gridDim.x + threadIdx.x;
    if (i < n) z[i] = a * x[i] + y[i];
}
extern "C" void solve(const float* X, const float* Y, float* Z, int n, float a) {
    saxpy<<<(n + 255) / 256, 256>>>(X, Y, Z, n, a);
}
"""


def test_the_line_of_a_change_with_which_all_samples_are_right_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GRADER_REPAIRS")
    program = tmp_path / "saxpy.cu"
    program.write_text(SCATTERED)
    said = grader("check", program, "--engine", "emulator", "--json", tmp_path / "record.json")
    assert said.code == 1
    assert "saxpy.cu:2: `blockIdx.x * gridDim.x + threadIdx.x` has a wrong factor" in " ".join(said.out.split())
    tests = json.loads((tmp_path / "record.json").read_text())["tests"]
    found = next(each for test in tests for each in test["findings"] if each["kind"] == "repaired")
    assert found["line"] == 2
    assert found["words"]["new"] == "blockIdx.x * blockDim.x + threadIdx.x"


def test_a_changed_program_is_never_taken_from_the_cache_of_another(tmp_path: Path) -> None:
    (tmp_path / "saxpy.cu").write_text(SCATTERED)
    one = read_submission(tmp_path / "saxpy.cu", load_assignment("saxpy"))
    other = one.with_files((("saxpy.cu", SCATTERED.replace("gridDim", "blockDim").encode()),))
    assert one.sha256 == one.with_files(one.files).sha256 != other.sha256


def test_a_grid_is_not_made_larger_since_other_mistakes_then_do_no_harm() -> None:
    text = KERNELS.replace("<<<groups,", "<<<min(groups, 9),")
    tries = schemata((("hw4.cu", text.encode()),), ()).tries
    assert not [each.new for each in tries if each.new.startswith("max(groups")]


def test_a_program_that_sleeps_does_not_stretch_the_tries(
    made: Schemata, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It takes no processor time, so the search ends by wall time too, after the first round."""
    rules, slept = load_assignment("saxpy"), list[float]()
    suite, files = load_suite(rules.testcases_file), TestcaseFiles(tmp_path)
    (case, *_) = cases = suite.select("s01")
    ensure(cases, suite, files)

    def sleeps(job: Job, limits: Limits) -> Outcome:
        slept.append(limits.wall_s)
        return Outcome(None, "SIGKILL", "time", limits.wall_s, 0.0, 0, "", "")

    monkeypatch.setattr(repairing.sandbox, "run", sleeps)
    grading: Any = SimpleNamespace(files=files, assignment=rules)
    assert repairing._Search(grading, tmp_path).repairing(made.tries, case) == []
    assert len(slept) <= 1 + (os.cpu_count() or 1)
    assert max(slept) <= 8 * repairing.SEARCH_CPU_S


def test_samples_are_tried_while_there_is_time_and_each_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    cases: Any = [SimpleNamespace(flops=flops) for flops in (3, 20, 10, 40, 30, 1000, 2000)]
    search = repairing._Search(SimpleNamespace(), Path(), control_s=0.01)  # type: ignore[arg-type]

    def run(numbers: list[int], case: Any, cpu_s: float) -> set[int]:
        search.spent_s += case.flops / 100
        return set(numbers) - {30: {2}, 1000: {1, 2}}.get(case.flops, set())

    monkeypatch.setattr(search, "run", run)
    change = Change(file="a.cu", start=0, end=1, line=1, kind="name", old="a", new="b", likely=1.0, number=1)
    both = [change, change.model_copy(update={"number": 2})]
    assert search.right_on(both, cases[0], cases[1:]) == ([change], 5)
    assert search.right_on([], cases[0], cases[1:]) == ([], 1)
    assert search.right_on(both, cases[0], [cases[2], cases[5]]) == (both, 1)  # its limit may have ended the last run
