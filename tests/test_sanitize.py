"""compute-sanitizer's findings, from what it wrote on an H200 (2025.3.1, 2026-11-21)."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cudaemu.process import Runner
from grader.base.errors import UsageError
from grader.base.verdict import Verdict
from grader.commands.inspection import sample_to_sanitize
from grader.findings import Finding, Place, advice, fact, kind_of, sentence
from grader.programs.engine.interface import Compiled
from grader.sanitizers import CHECKS, Check, Report, by_place, parse_checks, parse_report, render, run_check
from tests.support.records import made_record, made_test
from tests.support.timed_engine import TimedC, tool

FIXTURES = Path(__file__).parent / "fixtures" / "sanitizer"


def report(check: Check, name: str) -> Report:
    return parse_report(check, (FIXTURES / f"{name}.txt").read_text())


def test_a_stray_read_is_traced_to_kernel_block_thread_and_line() -> None:
    found = report("memory", "out_of_bounds_memcheck")
    assert not found.not_run
    assert found.errors == 2
    first = found.findings[0].first
    assert fact(first) == "read 4 bytes just past the end of the 32768 bytes of the nearest allocation"
    assert first.kernel == "copy_all(const float *, float *, int)"
    assert (first.file, first.line) == ("out_of_bounds.cu", 9)
    assert (first.block, first.thread) == ((32, 0, 0), (0, 0, 0))
    assert advice(first)
    api = found.findings[1].first
    assert kind_of(api).check == "api"
    assert "cudaDeviceSynchronize failed with cudaErrorLaunchFailure (error 719)" in fact(api)


def test_a_race_names_both_accesses_and_counts_all_hazards() -> None:
    found = report("race", "race_racecheck")
    assert found.errors == 2049
    (finding,) = found.findings
    assert finding.times == 20
    assert finding.first.block == (2, 0, 0)
    assert sentence(finding.first).startswith("Race: race.cu:11 reads memory while another warp still writes it at ")
    assert "race.cu:9; put __syncthreads() between them" in sentence(finding.first)


def test_reads_of_memory_nobody_wrote_are_one_finding_per_line_of_code() -> None:
    found = report("init", "uninitialised_initcheck")
    assert found.errors == 64
    (finding,) = found.findings
    assert finding.times == 20
    assert (finding.first.file, finding.first.line) == ("uninitialised.cu", 8)
    assert finding.first.thread == (0, 0, 0)


def test_a_fault_inside_an_intrinsic_is_placed_where_it_was_called() -> None:
    text = (
        "========= Barrier error detected. Invalid arguments.\n"
        "=========     at __syncwarp(unsigned int)+0x1b0 in sm_30_intrinsics.hpp:110\n"
        "=========     by thread (16,0,0) in block (0,0,0)\n"
        "=========         Device Frame: half_waits(float *, const float *)+0x1b0 in divergent_barrier.cu:17\n"
        "========= \n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    first = parse_report("sync", text).findings[0].first
    assert (first.kernel, first.file, first.line) == ("half_waits(float *, const float *)", "divergent_barrier.cu", 17)
    assert advice(first) == "Every thread that calls a warp function must be in its mask."


def test_a_wrong_mask_is_one_finding_with_its_thread() -> None:
    found = report("sync", "divergent_barrier_synccheck")
    assert found.errors > 0
    (finding,) = found.findings
    assert finding.first.kind in ("barrier_in_branch", "mask_wrong_argument")
    assert finding.first.thread == (0, 0, 0)
    assert (finding.first.file, finding.first.line) == ("divergent_barrier.cu", 15)
    assert finding.first.kernel == "half_waits(float *, const float *)"


@pytest.mark.parametrize(("check", "name"), [("memory", "flash2_memcheck"), ("race", "flash2_racecheck")])
def test_a_right_program_has_no_findings_and_counts_as_run(check: Check, name: str) -> None:
    found = report(check, name)
    assert found == Report(check, (), 0, "")
    assert render([found]) == f"{check}: nothing found."


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("========= Error: Target application terminated before first instrumented API call\n", "terminated before"),
        ("========= Device not supported. Please refer to the documentation\n", "Device not supported"),
        ("", "without a summary"),
    ],
)
def test_a_run_in_which_nothing_was_instrumented_is_no_clean_bill(text: str, why: str) -> None:
    found = parse_report("memory", f"========= COMPUTE-SANITIZER\n{text}")
    assert why in found.not_run
    assert "not run" in render([found])
    assert "nothing found" not in render([found])


def test_the_older_form_of_a_place_is_understood() -> None:
    text = (
        "========= Invalid __shared__ write of size 4 bytes\n"
        "=========     at 0x70 in old.cu:12:kernel(int *)\n"
        "=========     by thread (3,0,0) in block (1,2,0)\n"
        "=========     Address 0x40 is out of bounds\n"
        "========= \n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    first = parse_report("memory", text).findings[0].first
    assert (first.file, first.line, first.kernel) == ("old.cu", 12, "kernel(int *)")
    assert (first.block, first.thread) == ((1, 2, 0), (3, 0, 0))


def test_a_student_reads_what_where_and_what_to_do() -> None:
    text = render([report("memory", "out_of_bounds_memcheck")])
    assert "memory: 2 errors." in text
    assert "at out_of_bounds.cu:9, in copy_all, block (32,0,0), thread (0,0,0)" in text
    assert "Check the index against the size of the array" in text


def test_checks_are_named_one_by_one_or_all_at_once() -> None:
    assert parse_checks("all") == CHECKS
    assert parse_checks("sync, memory") == ("memory", "sync")
    with pytest.raises(UsageError, match="there is no check 'memcheck'"):
        parse_checks("memcheck")


def test_memory_that_was_never_freed_is_a_note() -> None:
    log = (
        "========= COMPUTE-SANITIZER\n"
        "========= Leaked 4,000 bytes at 0x7f2a2fa00000\n"
        "=========\n"
        "========= LEAK SUMMARY: 4,000 bytes leaked in 1 allocations\n"
        "========= ERROR SUMMARY: 1 error\n"
    )
    (finding,) = parse_report("memory", log).findings
    assert kind_of(finding.first).severity == "note"
    assert fact(finding.first) == "leak: the 4000 bytes of cudaMalloc were never freed"


# ---- running the tools ------------------------------------------------------------------------------------------

FINDS_ITS_CANARY = 'case "$all" in *sanitizer-canary*) cat CANARY; exit;; esac\n'
CANARIES: dict[Check, str] = {
    "memory": "out_of_bounds_memcheck",
    "race": "race_racecheck",
    "init": "uninitialised_initcheck",
    "sync": "divergent_barrier_synccheck",
}


class WithCanary(TimedC):
    """Its compiler makes a file of whatever it is given: nothing here is executed but the tool."""

    def compile(
        self, sources: Sequence[str], flags: Sequence[str], *, folder: Path, output: Path, run: Runner
    ) -> Compiled:
        output.touch(0o755)
        return Compiled(None, "")


def checked(
    folder: Path, check: Check, script: str, *, kernels: int = 3, canary: str = FINDS_ITS_CANARY, wall_s: float = 60
) -> Report:
    """What comes of a check with a script in the tool's place."""
    engine = WithCanary(folder / "toolkit")
    root = engine.toolkit.root
    (root / "bin").mkdir(parents=True)
    for name in FIXTURES.iterdir():
        (root / name.name).write_text(name.read_text())
    text = (canary + script).replace("CANARY", str(root / f"{CANARIES[check]}.txt")).replace("FIXTURES", str(root))
    tool(root, "compute-sanitizer", text)
    program = folder / "program"
    program.touch()
    return run_check(engine, program, ("in", "{output}"), check, readable=(), kernels=kernels, wall_s=wall_s)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("check", CHECKS)
def test_each_tool_is_called_by_its_own_name_and_its_log_is_read(check: Check, tmp_path: Path) -> None:
    names = {"memory": "memcheck", "race": "racecheck", "init": "initcheck", "sync": "synccheck"}
    script = f'case "$all" in *"--tool {names[check]}"*program*in*output*) cat CANARY;; esac'
    found = checked(tmp_path, check, script)
    assert found.not_run == ""
    assert found.errors > 0
    assert found.findings[0].first.line is not None


def test_nothing_found_is_good_news_only_when_the_canary_was_found(tmp_path: Path) -> None:
    clean = "cat FIXTURES/flash2_memcheck.txt"
    assert checked(tmp_path / "one", "memory", clean) == Report("memory")
    blind = checked(tmp_path / "two", "memory", clean, canary="")
    assert "does not find the known fault of a test program" in blind.not_run


def test_a_program_without_kernels_counts_as_not_looked_at(tmp_path: Path) -> None:
    found = checked(tmp_path, "memory", "exit 9", kernels=0)
    assert found.not_run == "the program launched no kernel"


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ('echo "========= Error: Device not supported. Please refer to --help"', "Device not supported"),
        ('echo "========= Internal Sanitizer Error: out of memory"', "Internal Sanitizer Error"),
        ("exit 1", "ended without a summary"),
    ],
)
def test_a_tool_that_could_not_look_says_so(script: str, words: str, tmp_path: Path) -> None:
    found = checked(tmp_path, "memory", script)
    assert words in found.not_run


def test_a_tool_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    found = checked(tmp_path, "race", "exec sleep 60", wall_s=0.5)
    assert found.not_run == "was stopped after 0.5 s"


def test_without_the_tool_it_is_said_where_it_comes_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("grader.programs.toolkit.shutil.which", lambda name: None)
    found = run_check(TimedC(tmp_path), tmp_path, (), "memory", readable=(), kernels=1)
    assert found.not_run == "compute-sanitizer is not installed: install the CUDA toolkit"


def test_the_emulators_findings_are_one_for_each_place_with_errors_first() -> None:
    def told(kind: str, thread: int, line: int, other: int) -> Finding:
        place = Place(file="hw4.cu", line=other)
        return Finding(kind=kind, block=(0, 0, 0), thread=(thread, 0, 0), file="hw4.cu", line=line, other=place)

    races = [("race_of_writes", 1, 9, 7), ("race", 2, 9, 7), ("race", 3, 9, 7), ("race", 3, 9, 8)]
    found = by_place([told(*race) for race in races])
    assert [(kind_of(f.first).severity, f.first.thread, f.times) for f in found] == [
        ("error", (2, 0, 0), 2),
        ("error", (3, 0, 0), 1),
        ("warning", (1, 0, 0), 1),
    ]


@pytest.mark.parametrize(("failing", "sample"), [((), "s03"), (("s07", "s05"), "s05")])
def test_the_smallest_failing_sample_is_looked_at_and_never_a_mere_1_x_1(failing: tuple[str, ...], sample: str) -> None:
    names = [f"s0{number}" for number in range(1, 9)]
    tests = [made_test(name, Verdict.WRONG_ANSWER if name in failing else Verdict.PASSED) for name in names]
    assert sample_to_sanitize(made_record(tests=tests, assignment="matmul")) == sample
