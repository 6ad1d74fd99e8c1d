"""A failed test explains itself: a second run with checks names the line that is wrong, and changes nothing else."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from grader.base.errors import MachineFault
from grader.base.paths import cache_folder
from grader.base.verdict import Fault, Verdict
from grader.course.assignment import Assignment, HiddenInputs
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.findings import Finding, Place, without_echoes
from grader.grading import closer_look
from grader.grading.closer_look import CloserLook, case_to_look_at
from grader.grading.judgement import Judgement
from grader.grading.tested import Ran, Tested
from grader.programs.build import Build, build
from grader.programs.engine.emulator import EmulatorEngine
from grader.programs.submission import read_submission
from grader.programs.toolkit import find_toolkit
from grader.report import terminal
from grader.sanitizers import Files, said_of
from tests.support.causes import cause_of
from tests.support.command_line import grader
from tests.support.course import PROGRAMS, ROOT, course_with_emulator_limit
from tests.support.records import made_record, made_test

LINES = {line.strip(): n for n, line in enumerate((PROGRAMS / "missing_barrier.cu").read_text().splitlines(), 1)}
LOADS = next(number for line, number in LINES.items() if "vj[i] = v" in line)
READS = next(number for line, number in LINES.items() if "p * vj" in line)


def test_a_test_that_fails_for_a_race_leads_with_it(tmp_path: Path) -> None:
    words = ("--engine", "emulator", "--tests", "s01,s02", "--json", tmp_path / "record.json")
    said = grader("check", PROGRAMS / "missing_barrier.cu", *words)
    assert said.code == 1
    lead = " ".join(said.out.split("\n\n")[1].split())
    assert lead.startswith(
        f"Race: missing_barrier.cu:{READS} reads `vj` while another warp writes it at missing_barrier.cu:{LOADS} in "
        "another pass of the loop."
    )
    assert "put __syncthreads() at the end of the loop" in lead
    assert "On a GPU this can pass by luck. (Seen on s01 with checks.)" in lead
    assert said.out.count("Race:") == 1
    assert "--sanitize" not in said.out
    record = json.loads((tmp_path / "record.json").read_text())
    first, second = record["tests"]
    assert (first["verdict"], first["fault"]) == (second["verdict"], second["fault"]) == ("wrong_answer", "student")
    assert first["reason"].startswith("Race: missing_barrier.cu:") and "of 8,192 values" in first["reason"]
    assert record["closer_look"]["test"] == "s01"
    assert 0 < record["closer_look"]["seconds"] < 200


def test_a_program_that_passes_by_luck_is_warned_and_still_passes(tmp_path: Path) -> None:
    words = ("--engine", "emulator", "--tests", "s01", "--json", tmp_path / "record.json")
    said = grader("check", PROGRAMS / "race.cu", *words)
    assert said.code == 0
    assert said.out.split("\n\n")[1].startswith("It passes, but: Race: race.cu:11 ")
    record = json.loads((tmp_path / "record.json").read_text())
    assert record["tests"][0]["verdict"] == "passed"
    assert record["tests"][0]["warnings"] == [record["closer_look"]["cause"]]


RACY_TILES = """
__global__ void softmax(const float* x, float* y, int rows, int columns) {
    __shared__ int end;
    __shared__ float highest[2];
    x += size_t(blockIdx.x) * columns, y += size_t(blockIdx.x) * columns;
    float most = -INFINITY, sum = 0.0f;
    for (int begin = 0; begin < columns; begin += 64) {
        if (threadIdx.x == 0) end = min(begin + 64, columns);
        __syncthreads();
        for (int j = begin + threadIdx.x; j < end; j += 64) most = fmaxf(most, x[j]);  // looks at some columns twice
    }
    for (int other = 16; other > 0; other /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, other));
    highest[threadIdx.x / 32] = most;
    __syncthreads();
    most = fmaxf(highest[0], highest[1]);
    for (int j = 0; j < columns; ++j) sum += expf(x[j] - most);
    for (int j = threadIdx.x; j < columns; j += 64) y[j] = expf(x[j] - most) / sum;
}
"""


def test_a_race_between_passes_over_tiles_that_all_samples_pass_is_found_on_a_larger_one(tmp_path: Path) -> None:
    text = (ROOT / "reference/softmax/naive.cu").read_text()
    before, _, after = text.partition("// Grid: at least")
    host = after.partition("static void")[2].replace("softmax<<<(rows + 127) / 128, 128>>>", "softmax<<<rows, 64>>>")
    (tmp_path / "softmax.cu").write_text(f"{before}{RACY_TILES}static void{host}")
    for tests, seen in (("s03", ""), ("public", "s05")):
        words = ("--engine", "emulator", "--tests", tests, "--json", tmp_path / "record.json")
        said = grader("check", tmp_path / "softmax.cu", *words)
        assert said.code == 0 and said.out.count(f"(Seen on {seen} with checks.)") == bool(seen), said.out
        assert ("It passes, but: Race: softmax.cu:" in said.out) == bool(seen)


def test_grading_looks_no_closer_at_what_passes(tmp_path: Path) -> None:
    words = ("--engine", "emulator", "--tests", "s01", "--json", tmp_path / "record.json")
    assert grader("grade", PROGRAMS / "race.cu", *words).code == 0
    assert json.loads((tmp_path / "record.json").read_text())["closer_look"] is None


# ---- which test, and what becomes of a look that fails --------------------------------------------------------------


def test_a_test_that_crashed_is_looked_at_before_a_smaller_one_that_is_wrong(hw4: Assignment) -> None:
    cases = suite_of(hw4).cases
    s01, s02, s04, s05, s06 = (cases[name] for name in ("s01", "s02", "s04", "s05", "s06"))
    crashed, wrong = Verdict.RUNTIME_ERROR, Verdict.WRONG_ANSWER
    verdicts = {s01: wrong, s02: Verdict.PASSED, s05: crashed, s04: crashed, s06: Verdict.NOT_RUN}
    assert case_to_look_at(verdicts) is s04
    assert case_to_look_at({s01: wrong, s02: Verdict.PASSED}) is s01
    assert case_to_look_at({s02: Verdict.PASSED}) is s02


def _unbuilt(fault: Fault) -> Callable[..., Build]:
    return lambda *_: Build(None, fault, "It uses what is not there.", "", 0.0, cached=False, key="")


def _no_room(*_: object) -> Build:
    raise MachineFault("The disk is full.")


@pytest.mark.parametrize(
    ("failing", "why"),
    [
        (_unbuilt(Fault.GRADER), "it was not built with checks: It uses what is not there."),
        (_no_room, "The disk is full."),
    ],
)
def test_a_look_that_fails_says_why_and_names_no_cause(
    failing: Callable[..., Build], why: str, hw4: Assignment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closer_look, "build", failing)
    engine = EmulatorEngine(find_toolkit(), "sm_80")
    suite = suite_of(hw4)
    submission = read_submission(PROGRAMS / "race.cu", hw4)
    with CloserLook(engine, hw4, submission, TestcaseFiles.beside(suite)) as look:
        found = look.at(suite.cases["s01"], Verdict.WRONG_ANSWER)
    assert (found.cause, found.problem) == ("", why)
    record = made_record(tests=[made_test("s01", Verdict.WRONG_ANSWER)], closer_look=found)
    text = " ".join(terminal.render_check(record).split())
    assert "s01 was run again to find a cause" in text and f"({why.rstrip('.')})." in text
    assert "WRONG ANSWER" in text


# ---- the sentence ---------------------------------------------------------------------------------------------------


HIDDEN = """namespace { __global__ void fault(float* out) { out[threadIdx.x + 64] = 1; } }
int main() {
    float* out;
    cudaMalloc(&out, 256);
    fault<<<1, 32>>>(out);
    cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("renamed", [True, False])
def test_a_look_at_a_program_whose_kernels_it_lacks_claims_nothing(
    renamed: bool, hw4: Assignment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nvcc names kernels in an anonymous namespace after the folder, and the look's PTX is compiled in another one than
    the object, which the cache has from the first build."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/native").symlink_to(cache_folder() / "native")  # the compiled runtime has no program in it
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))
    if not renamed:
        monkeypatch.setattr("cudaemu.nvcc.MAX_PTX_BYTES", 0)
    (tmp_path / "hw4.cu").write_text(HIDDEN)
    submission = read_submission(tmp_path / "hw4.cu", hw4)
    engine, suite = EmulatorEngine(find_toolkit(), "sm_80"), suite_of(hw4)
    assert build(submission, hw4, engine).program is not None
    with CloserLook(engine, hw4, submission, TestcaseFiles.beside(suite)) as look:
        found = look.at(suite.cases["s01"], Verdict.WRONG_ANSWER)
    if renamed:
        assert found.cause.startswith("hw4.cu:1: kernel fault, thread (0,0,0)") and not found.problem
    else:
        assert not found.findings and found.problem.startswith("the build with checks lacks a kernel")


TWO_KERNELS = """__global__ void first(float* out) { out[threadIdx.x] = 1; }
__global__ void second(float* out) { __shared__ float all[64]; all[threadIdx.x] = 1;
    out[threadIdx.x] = all[63 - threadIdx.x]; }
int main() {
    float* out;
    cudaMalloc(&out, 256);
    first<<<1, 64>>>(out);
    second<<<1, 64>>>(out);
    cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize("launched", [("first(float*)", "second(float*)"), ("first(float*)",), ("third()",)])
def test_a_kernel_that_the_first_failed_test_did_not_launch_is_looked_at_all_the_same(
    launched: tuple[str, ...], hw4: Assignment, tmp_path: Path
) -> None:
    (tmp_path / "hw4.cu").write_text(TWO_KERNELS)
    submission, suite = read_submission(tmp_path / "hw4.cu", hw4), suite_of(hw4)
    case, judgement = suite.cases["s01"], Judgement(Verdict.WRONG_ANSWER, Fault.STUDENT)
    with CloserLook(EmulatorEngine(find_toolkit(), "sm_80"), hw4, submission, TestcaseFiles.beside(suite)) as look:
        look.prepare(Tested(case, judgement, Ran(0, 1, 0, "", "", len(launched), launched)), record=True)
        found = look.at(case, Verdict.WRONG_ANSWER)
    assert [(each.line, each.array) for each in found.findings if each.kind == "race"] == [(3, "all")]


def test_a_race_is_first_looked_for_in_a_small_sample_that_passed(hw4: Assignment) -> None:
    cases = suite_of(hw4).cases
    small, large = (each(cases.values(), key=lambda case: case.flops) for each in (min, max))
    submission = read_submission(PROGRAMS / "race.cu", hw4)
    engine, rules = EmulatorEngine(find_toolkit(), "sm_80"), {"hidden_inputs": HiddenInputs(show="values")}
    with CloserLook(engine, hw4.model_copy(update=rules), submission, TestcaseFiles.beside(suite_of(hw4))) as look:
        assert list(look.cases(large, [small])) == [small, large]
        assert list(look.cases(large, [replace(small, hidden=True)])) == [large]
        assert list(look.cases(large, [])) == [large]
        assert list(look.cases(small, [large])) == [small]
        assert list(look.cases(large, [small, large])) == [large]


def a_race(between: str, line: int, other: int, **changes: Any) -> Finding:
    how = {"blocks": "blocks", "copy": "copy"}.get(between, "update" if line == other else "barrier")
    words = {"does": "read", "other_does": "write", "between": between, "how": how}
    kind = "race_in_warp" if between == "lanes" else "race"
    place = Place(file="hw4.cu", line=other)
    fields = {"kernel": "k", "block": (0, 0, 0), "thread": (0, 0, 0), "array": "tile"} | changes
    return Finding(kind=kind, file="hw4.cu", line=line, other=place, words=words, **fields)


UNWRITTEN = Finding(kind="uninitialised", file="hw4.cu", line=3, kernel="k", array="x")
PAST = Finding.from_facts(
    "past_the_end",
    {"did": "write", "bytes": 4, "relation": "just_past", "of": "allocation", "size": 4096, "by": "cudaMalloc"}
    | {"allocated_file": "hw4.cu", "allocated_line": 107},
    kernel="attention(float*)",
    thread=(3, 0, 0),
    block=(0, 0, 0),
    file="hw4.cu",
    line=60,
)


def source(lines: Sequence[str], first: int = 1) -> Files:
    """A file whose line `first` is the first of these lines."""
    return [("hw4.cu", ("\n" * (first - 1) + "\n".join(lines)).encode())]


def test_two_lines_that_race_between_warps_do_not_race_within_one_as_well() -> None:
    found = [a_race("lanes", 7, 9), a_race("lanes", 7, 8), a_race("warps", 9, 7)]
    assert without_echoes(found) == (found[1], found[2])
    assert "__syncwarp" not in cause_of(found)


def test_where_blocks_race_no_barrier_is_advised() -> None:
    """A barrier cannot help where blocks race for the same lines or the same array."""
    for within in (a_race("warps", 7, 7), a_race("lanes", 7, 7), a_race("warps", 7, 9)):
        said = cause_of([within, a_race("blocks", 7, 7)])
        assert "__syncthreads" not in said and "no block waits for another" in said
    other = a_race("warps", 7, 9, array="sums")
    assert without_echoes([other, a_race("blocks", 7, 7)]) == (other, a_race("blocks", 7, 7))


def test_a_race_in_a_python_file_is_told_in_the_words_of_triton() -> None:
    found = a_race("warps", 7, 9)
    assert "put tl.debug_barrier() between them" in cause_of([found.model_copy(update={"file": "softmax.py"})])
    assert "__syncthreads()" in cause_of([found])


def test_a_race_between_warps_is_the_cause_before_anything_else() -> None:
    warps, lanes = a_race("warps", 7, 9), a_race("lanes", 1, 2)
    assert cause_of([lanes, UNWRITTEN, warps, PAST]).startswith("Race: hw4.cu:7 reads `tile` while another warp still")
    assert cause_of([Finding(kind="outdated_read", file="hw4.cu", line=5)]) == ""
    assert cause_of([lanes, UNWRITTEN, PAST]).startswith("hw4.cu:60: kernel attention, thread (3,0,0) of block (0,0,0)")
    assert cause_of([PAST, warps]).startswith("hw4.cu:60: "), "the race may be a consequence of the bad access"
    assert cause_of([lanes, UNWRITTEN]).startswith("hw4.cu:3: kernel k read x")
    assert cause_of([lanes]).endswith("put __syncwarp() between them. On a GPU this can pass by luck.")
    assert cause_of([Finding(kind="out_of_memory", words={"function": "cudaMalloc"}, values={"bytes": 9})]) == ""


@pytest.mark.parametrize(
    ("refused", "said"),
    [
        (
            {"kind": "out_of_memory", "words": {"function": "cudaMalloc"}, "values": {"bytes": 9}},
            "cudaMalloc: the request for 9 bytes was refused",
        ),
        (
            {"kind": "launch_refused", "words": {"launched": "k(int*, int)", "why": "no"}},
            "the launch of kernel k was refused: no.",
        ),
    ],
)
def test_a_refused_call_is_named_before_what_follows_from_it(refused: dict[str, Any], said: str) -> None:
    call = Finding(**refused, file="hw4.cu", line=7)
    assert cause_of([call, UNWRITTEN]).startswith(f"hw4.cu:7: {said}")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["for (;;) {", "for (;;) {", "s[i] = 1;", "}", "x += s[j];", "}"], "between them, after line 5"),
        (["for (;;) {", "x += s[j];", "s[i] = 1;", "__syncthreads();", "}"], "between them, after line 3"),
        (["for (;;) {", "s[i] = 1;", "__syncthreads();", "x += s[j];", "}"], "before hw4.cu:6 closes it"),
        (["for (;;) {", "s[i] = 1;", "block.sync();", "x += s[j];", "__syncthreads();", "}"], "between them. "),
        (["s[i] = 1;", "__syncthreads();", "x += s[j];"], "between them. "),
        (["s[i] = 1; }", "__device__ void use() {", "x += s[j];"], "between them. "),
        (
            ["for (;;) {", "if (threadIdx.x < h) {", "x = s[j];", "s[i] = x;", "}", "}"],
            "end of the loop, before hw4.cu:7",
        ),
        (
            ["for (;;) {", "s[i] = 1;", "__syncthreads();", "use();", "} }", "__device__ void use() {", "x += s[j];"],
            "before hw4.cu:6 closes it",
        ),
        (["s[i] = 1;", "t[i] = 2;", "y = 3;", "x += s[j];", "x += t[j];"], "between them, after line 3"),
    ],
    ids=[
        "after the loads",
        "after the use",
        "end of the loop",
        "both are there",
        "no loop",
        "two functions",
        "in an if",
        "in a function that the loop calls",
        "all stored",
    ],
)
def test_a_missing_barrier_is_placed_by_those_that_are_there(lines: list[str], said: str) -> None:
    lines = ["__global__ void f() {", *lines, "}"]
    read, write = (next(n for n, line in enumerate(lines, 1) if text in line) for text in ("s[j]", "s[i]"))
    assert said in cause_of([a_race("warps", read, write, array="s")], source(lines))


def test_a_read_that_was_moved_out_of_a_loop_is_named_where_it_stands() -> None:
    lines = [
        "__global__ void f() {",
        "s[t] = w[t];",
        "for (int x = 0; x < n; ++x) {",
        "y = w[x];",
        "a += s[63];",
        "}",
        "}",
    ]
    said = cause_of([a_race("warps", 3, 2, array="s")], source(lines))
    assert said.startswith("Race: hw4.cu:5 reads `s`") and "put __syncthreads() between them, after line 2" in said
    twice = [*lines[:4], "a += s[63] + y;", "a += s[62];", *lines[5:]]
    assert cause_of([a_race("warps", 3, 2, array="s")], source(twice)).startswith("Race: hw4.cu:3 reads `s`")


def test_memory_is_called_as_the_program_calls_it() -> None:
    found = a_race("blocks", 7, 7, array=None, allocated=Place(file="hw4.cu", line=20))
    said = cause_of([found], source(["void f() {", "  cudaMalloc((void **)&d_out, bytes);", "}"], 19))
    assert said.startswith("Race: hw4.cu:7 reads `d_out` while another block still writes it at the same line")
    assert "memory allocated at hw4.cu:20" in cause_of([found])


def test_a_write_past_the_end_is_said_in_one_sentence_with_the_pointer_s_name() -> None:
    files = source(["void f() {", "    check(cudaMalloc((void**)&d_out,", "        bytes));", "}"], 106)
    assert said_of(PAST, files).startswith(
        "hw4.cu:60: kernel attention, thread (3,0,0) of block (0,0,0) wrote 4 bytes just past the end of `d_out` "
        "(4096 bytes, allocated at hw4.cu:107)."
    )
    assert "just past the end of the 4096 bytes of cudaMalloc at hw4.cu:107." in said_of(PAST)
    two = ["void f() { cudaMalloc(&d_q, bytes); cudaMalloc(&d_out, bytes); }"]
    assert "past the end of `d_q` or `d_out` (4096 bytes" in said_of(PAST, source(two, 107))


KERNEL_LINES = [
    "__global__ void k(float* q, int b, int n) {",
    "int i = threadIdx.x; if (i < 3) return;",
    "float* s = q + b;",
    "x = s[i];",
    "}",
    "void f(int n, int d) { int size = 64; float *s;",
    "k<<<2, (a + 1), size>>>();",
    "cudaMalloc(&s, n * d);",
    "}",
]


@pytest.mark.parametrize(
    ("kind", "facts", "origin"),
    [
        ("unwritten_shared", {"how": "returned", "returned": 9, "threads": 32, "array": "x"}, "before, at line 2."),
        ("past_dynamic_shared", {"did": "write", "bytes": 4}, "at hw4.cu:7, of the size computed at hw4.cu:6."),
        ("past_the_end", {"did": "write", "bytes": 4}, "; line 3 sets `s`."),
        ("misaligned", {"did": "write", "bytes": 4}, "a multiple of 4."),
    ],
)
def test_a_finding_goes_back_to_the_line_that_brought_it_about(kind: str, facts: dict[str, Any], origin: str) -> None:
    place = {"kernel": "k()", "block": (3, 0, 0), "thread": (0, 0, 0), "file": "hw4.cu", "line": 4}
    assert origin in said_of(Finding.from_facts(kind, facts, **place), source(KERNEL_LINES))


# ---- what does not end ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The root of a course whose emulator stops programs after a second."""
    return str(course_with_emulator_limit(tmp_path_factory.mktemp("course"), 1))


LAUNCHES = """
__global__ void step(float* x) {
    for (int i = 0; i < 10000; ++i) x[threadIdx.x] += i & 1 ? -1 : 1;  // a trace holds two million launches at most
}
#define LAUNCH(input, output, batches, n, d) for (;;) step<<<1, 32>>>(output)
#include "attention.cuh"
"""


@pytest.mark.parametrize(
    ("program", "where"),
    [
        ("hang", "attention.cuh:93: host code was still running here."),
        (
            "kernel_hang",
            "kernel_hang.cu:3: kernel spin, thread (0,0,0) of block (0,0,0): the loop at this line never ends",
        ),
        ("launches", "attention.cuh:89: "),
    ],
)
def test_check_stops_at_the_first_loop_that_never_ends_and_names_it(
    program: str, where: str, impatient: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(closer_look, "ENDLESS_LOOK_LIMIT_S", 5.0 if program == "launches" else 1.0)
    for source in (PROGRAMS / "attention.cuh", PROGRAMS / f"{program}.cu"):
        if source.is_file():
            (tmp_path / source.name).write_text(source.read_text())
    if program == "launches":
        (tmp_path / "launches.cu").write_text(LAUNCHES)
    path = tmp_path / "record.json"
    words = ("--assignment", "hw4", "--engine", "emulator", "--tests", "s01..s03", "--json", path)
    said = grader("check", tmp_path / f"{program}.cu", *words, GRADER_ROOT=impatient)
    assert said.code == 1
    tests = json.loads(path.read_text())["tests"]
    assert [test["verdict"] for test in tests] == ["time_limit", "not_run", "not_run"]
    assert tests[0]["reason"].startswith(where)
    assert "emulator's own limit (not the assignment's) of 1 s" in tests[0]["reason"]
    assert tests[1]["reason"] == "Not run: s01 ran into its time limit."
    assert tests[1]["fault"] is None
    assert "s02, s03: Not run: s01 ran into its time limit." in said.out
