"""Grading with times, from build to record, with an engine that needs no GPU (tests/support/timed_engine.py)."""

import re
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from grader.base.errors import GraderFault, UsageError
from grader.base.paths import course_root
from grader.base.progress import Progress
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Verdict
from grader.course.assignment import Assignment, FailedTests, ReferenceRatio, TimingRules
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.testcase import Case, Suite, load_suite
from grader.gpu.facts import GpuFacts, known_limits
from grader.gpu.idle import Use
from grader.gpu.lock import gpu_to_ourselves
from grader.gpu.outside_clock import Busy
from grader.grading import experiments, probing
from grader.grading.bench import open_bench
from grader.grading.judgement import Judgement, explained_failure
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.programs.submission import read_submission
from grader.programs.trace import read_trace
from grader.records.record import ProfileRecord, Record
from grader.records.rescore import scored
from grader.report.explain import differences, explain
from tests.support.sequential import right_program
from tests.support.timed_engine import GPU, TimedC, program, tool

RIGHT = right_program()
HEADER = (course_root() / "reference/sequential.h").read_text()


@pytest.fixture
def rules(hw4: Assignment) -> Assignment:
    """hw4's rules with a reference solution, ref.cu, and one sample as all its graded testcases."""
    ratio = ReferenceRatio(part="speed", points=20, kind="reference_ratio", tests="s01", reference="ref.cu")
    correct = FailedTests(part="correctness", points=60, kind="failed_tests", per_failure=3)
    return hw4.model_copy(update={"rubric": (correct, ratio), "timing": TimingRules(budget_s=30)})


@pytest.fixture
def suite(hw4: Assignment) -> Suite:
    whole = load_suite(hw4.testcases_file)
    return replace(whole, groups=dict.fromkeys(whole.groups, ("s01",)))


@pytest.fixture
def graded(rules: Assignment, suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Record]:
    """Grades a program of so many milliseconds in a session with a reference of so many."""
    cases = suite.select("s01")
    files = TestcaseFiles(tmp_path / "files")
    generate(cases[0], files, suite.seed(cases[0]), lambda done, total: None)
    monkeypatch.setenv("GRADER_LOCKS", str(tmp_path))
    (tmp_path / "testcases").symlink_to(rules.testcases_file.parent)
    monkeypatch.setattr("grader.course.assignment.course_root", lambda: tmp_path)
    folder = tmp_path / "reference" / "hw4"
    folder.mkdir(parents=True)
    (folder / rules.baseline.source).touch()

    def run(
        own_ms: float, reference: str, *, own: str = RIGHT, baseline: Callable[[Case], Any] | None = None
    ) -> Record:
        (folder / "ref.cu").write_text(reference)
        hand_in = tmp_path / "alice" / "hw4.cu"
        for place in (hand_in.parent, folder):
            place.mkdir(exist_ok=True)
            (place / "sequential.h").write_text(HEADER)
        hand_in.write_text(program(own, own_ms))
        engine = TimedC(tmp_path)
        with open_bench(Setup(rules, suite, files, cases, engine)) as bench:
            grading = Grading(rules, suite, files, cases, engine, baseline=baseline, bench=bench)
            return grade(grading, read_submission(hand_in, rules), Progress())

    return run


def test_a_reference_is_timed_in_the_same_session_and_its_times_are_in_the_record(
    graded: Callable[..., Record],
) -> None:
    record = graded(0.36, program(RIGHT, 0.25))
    (test,) = record.tests
    assert test.gpu_ms == pytest.approx(0.36)
    assert test.reference is not None
    assert test.reference.name == "ref.cu"
    assert test.reference_ms == test.reference.timing.median_ms == pytest.approx(0.25)
    assert len([run for run in test.reference.timing.runs if run.use == "counted"]) == 3
    (_, part) = record.parts
    # 1.44 times as long: 20 · log(12 / 1.44) / log(12 / 1.2)
    assert part.points == pytest.approx(18.4)
    assert "1.44 times as long as ref.cu" in part.how
    text = explain(record)
    assert "1.4400 times the 0.25 ms of the reference solution, timed in the same grading" in text
    assert f"ref.cu, source {test.reference.sha256[:12]}" in text
    assert "reference's GPU time 0.25 ms: median of 3 runs" in text


def test_records_against_different_references_warn(graded: Callable[..., Record]) -> None:
    one, other = graded(0.3, program(RIGHT, 0.25)), graded(0.3, program(RIGHT, 0.26))
    assert any("another reference solution" in sentence for sentence in differences(one, other))
    assert differences(one, one) == []


def test_the_gpu_is_free_while_the_cause_of_a_failure_is_looked_for(
    graded: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def explained(*facts: Any) -> Judgement:
        with gpu_to_ourselves(GPU.uuid, lambda _: None):  # as another submission's grader
            said.append(threading.current_thread().name)
            return replace(explained_failure(*facts), cause="Because.")

    monkeypatch.setattr("grader.grading.one_test.explained_failure", explained)
    (test,) = graded(0.3, "does not compile", own="int main(void) { return 0; }").tests
    assert len(said) == 1 and said != [threading.main_thread().name]
    assert (test.verdict, test.cause) == (Verdict.NO_OUTPUT, "Because.")


class _Held(Exception):
    """The GPU is taken."""


def is_held() -> bool:
    def held(_: str) -> None:
        raise _Held

    try:
        with gpu_to_ourselves(GPU.uuid, held):
            return False
    except _Held:
        return True


def test_the_gpu_is_taken_for_runs_alone_not_for_baselines_or_builds_of_probes(
    graded: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[tuple[str, bool]] = []
    monkeypatch.setattr(experiments, "surer", lambda *_, **__: False)  # the source, in C, says too much
    for name in ("_programs", "_run_of"):
        before = getattr(probing, name)

        def watched(*given: Any, name: str = name, before: Callable[..., Any] = before) -> Any:
            said.append((name, is_held()))
            return before(*given)

        monkeypatch.setattr(probing, name, watched)
    wrong = RIGHT.replace("- new_max);\n", "- new_max) + 0.01f;\n")
    (test,) = graded(0.3, "does not compile", own=wrong, baseline=lambda _: said.append(("baseline", is_held()))).tests
    assert test.verdict is Verdict.WRONG_ANSWER
    assert list(dict.fromkeys(said)) == [("baseline", False), ("_programs", False), ("_run_of", True)]


def test_a_program_that_fails_has_no_time_and_needs_no_reference(graded: Callable[..., Record]) -> None:
    record = graded(0.3, "does not compile", own="int main(void) { return 0; }")
    assert record.tests[0].reference is None
    assert record.parts[1].points == 0


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("int main( {", "ref.cu: the reference solution does not compile"),
        (program("int main(void) { return 0; }", 0.2), "could not be timed on s01: on a fresh input it left no output"),
    ],
)
def test_a_reference_that_cannot_be_timed_is_the_graders_fault(
    graded: Callable[..., Record], reference: str, words: str
) -> None:
    with pytest.raises(GraderFault, match=words):
        graded(0.3, reference)


def test_a_reference_that_is_not_there_is_said_before_anything_runs(
    rules: Assignment, suite: Suite, tmp_path: Path
) -> None:
    files = TestcaseFiles(tmp_path)
    with pytest.raises(UsageError, match=r"speed compares with ref\.cu, which is not in .*reference/hw4"):
        open_bench(Setup(rules, suite, files, (), TimedC(tmp_path))).__enter__()


def test_two_references_in_one_rubric_are_refused(rules: Assignment) -> None:
    (_, ratio) = rules.rubric
    other = ratio.model_copy(update={"part": "more", "reference": "other.cu"})
    with pytest.raises(ValidationError, match=r"other\.cu and ref\.cu are both references"):
        Assignment.model_validate(
            rules.model_dump(by_alias=True) | {"rubric": [ratio.model_dump(), other.model_dump()]}
        )


# ---- profiles and floors ----------------------------------------------------------------------------------------

FIXTURES = Path(__file__).parent / "fixtures"
SM = known_limits((9, 0))
assert SM is not None
H200 = GpuFacts(132, 1980, 3201, 6016, 62914560, SM)  # as its driver gave them


def profile_of_naive(engine: TimedC, rules: Assignment, suite: Suite, tmp_path: Path) -> ProfileRecord:
    """The profile for the score, of the trace and the counters that naive.cu left on an H200."""
    files = TestcaseFiles(tmp_path / "files")
    case = suite.cases["s01"]
    generate(case, files, suite.seed(case), lambda done, total: None)
    built = tmp_path / "program"
    built.touch()
    trace = read_trace(FIXTURES / "trace" / "h200_naive_s01.jsonl")
    with open_bench(Setup(rules, suite, files, (case,), engine)) as bench:
        assert bench is not None
        return bench.profile(built, case, trace, None, Stopwatch())


@pytest.fixture
def hw4_suite(hw4: Assignment) -> Suite:
    return load_suite(hw4.testcases_file)


def test_the_occupancy_for_the_score_is_weighed_by_time_and_traceable(
    hw4: Assignment, hw4_suite: Suite, tmp_path: Path
) -> None:
    engine = TimedC(tmp_path / "toolkit")
    recorded = engine.toolkit.root / "recorded.csv"
    tool(engine.toolkit.root, "ncu", f"cat {recorded}")
    text = (FIXTURES / "ncu" / "naive_s05.csv").read_text()  # recorded with ncu's own spelling of names
    for kernel in read_trace(FIXTURES / "trace" / "h200_naive_s01.jsonl").kernels:
        text = re.sub(rf'"{kernel.name.partition("(")[0]}\([^"]*"', f'"{kernel.name}"', text)
    recorded.write_text(text)
    profile = profile_of_naive(engine, hw4, hw4_suite, tmp_path)
    # 14.1, 6.1 and 2.1 µs of the trace at 29.92, 73.07 and 44.79 %, from the counters
    kernels = {kernel.name.partition("(")[0]: kernel for kernel in profile.kernels}
    weighed = sum(kernel.share * kernel.metrics["achieved_occupancy"][2] for kernel in profile.kernels)
    assert profile.achieved == pytest.approx(0.2992), "the median, which is lower than the mean"
    assert f"not the mean, {weighed:.3f}" in profile.counted[-1]
    assert kernels["output_kernel"].metrics["achieved_occupancy"][2] == pytest.approx(0.2992)
    assert kernels["output_kernel"].share == pytest.approx(14144 / (6080 + 2080 + 14144))
    assert len(profile.counted) == 4 and all("launches profiled" in said for said in profile.counted[:3])


def test_without_counters_the_profile_says_why_and_keeps_what_the_trace_says(
    hw4: Assignment, hw4_suite: Suite, tmp_path: Path
) -> None:
    engine = TimedC(tmp_path / "toolkit")
    tool(engine.toolkit.root, "ncu", 'echo "==ERROR== ERR_NVGPUCTRPERM"')
    profile = profile_of_naive(engine, hw4, hw4_suite, tmp_path)
    assert profile.achieved is None
    assert "only administrators" in profile.reason
    assert [round(kernel.gpu_ms * 1e3, 2) for kernel in profile.kernels] == [14.14, 6.08, 2.08]
    made = scored(hw4, hw4_suite, (), (profile,), engine="cuda", measures_time=True)
    assert made.occupancy is None
    assert f"occupancy: not measured: s01: {profile.reason}" in made.not_measured


def test_a_time_below_what_the_gpu_can_do_is_refused_in_the_record(
    graded: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.grading.bench.gpu_facts", lambda uuid: H200)
    (test,) = graded(0.000002, program(RIGHT, 0.25)).tests  # 2 ns; the exponentials need 8, or 4
    assert test.verdict == "passed"
    assert "is less than the" in test.timing_refused
    assert test.speedup is None and test.reference is None
    assert test.floor is not None and test.floor.ms == max(term.ms for term in test.floor.terms)


@dataclass
class SeesBusy:
    """A clock outside that saw the GPU busy for so many seconds in one series of runs after the other."""

    busy_s: list[float]

    def mark(self) -> None:
        pass

    def worked(self, until: float) -> None:
        pass

    def between(self, first: None, second: None) -> Busy:
        return Busy("GPM", 1.0, self.busy_s.pop(0))


@pytest.mark.parametrize(("seen", "refused"), [([0.0], False), ([9.0, 0.0], False), ([9.0, 9.0], True)])
def test_work_seen_outside_is_held_against_a_program_only_where_it_is_seen_again(
    seen: list[float], refused: bool, graded: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SeesBusy([*seen, 0.0])  # the last is of the reference's runs
    monkeypatch.setattr("grader.grading.bench.outside_clock", lambda uuid: nullcontext(clock))
    (test,) = graded(0.3, program(RIGHT, 0.25)).tests
    assert bool(test.timing_refused) is refused
    assert any("timed again" in warning for warning in test.warnings) is (len(seen) > 1 and not refused)


@pytest.mark.parametrize("use", [Use((4711,), None, None), Use((), 3 << 30, 0)])
def test_work_that_may_be_somebody_elses_costs_no_points(
    use: Use, graded: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("grader.grading.bench.outside_clock", lambda uuid: nullcontext(SeesBusy([9.0, 9.0, 0.0])))
    monkeypatch.setattr("grader.grading.bench.use_reader", lambda uuid: nullcontext(lambda: use))
    monkeypatch.setattr("grader.gpu.idle.PATIENCE_S", 0.0)
    record = graded(0.3, program(RIGHT, 0.25))
    (test,) = record.tests
    assert (test.verdict, test.gpu_ms, test.timing_refused, test.flags) == ("passed", None, "", ())
    assert any(use.others in warning and "not measured" in warning for warning in test.warnings)
    assert record.parts[1].points is None


def test_a_time_that_the_trace_contradicts_counts_as_not_accelerated(graded: Callable[..., Record]) -> None:
    record = graded(1e6, program(RIGHT, 0.25))  # a kernel longer than the whole run
    (test,) = record.tests
    assert (test.verdict, test.gpu_ms, test.timing_refused) == ("passed", None, test.flags[0])
    assert record.parts[1].points == 0, "not null: then a forged trace would keep a student without any total"


def test_whether_the_gpu_was_idle_beforehand_is_recorded(graded: Callable[..., Record]) -> None:
    record = graded(0.3, program(RIGHT, 0.25))
    assert "NVML does not report" in record.machine.gpu_prepared
    assert f"the GPU before the first run: {record.machine.gpu_prepared[:30]}" in explain(record)


def test_in_one_session_the_reference_is_timed_once(
    rules: Assignment, suite: Suite, tmp_path: Path, graded: Callable[..., Record], monkeypatch: pytest.MonkeyPatch
) -> None:
    graded(0.3, program(RIGHT, 0.25))  # lays out files, reference and hand-in
    files, cases = TestcaseFiles(tmp_path / "files"), suite.select("s01")
    hand_in = read_submission(tmp_path / "alice" / "hw4.cu", rules)
    engine = TimedC(tmp_path)
    monkeypatch.setattr("grader.grading.bench.use_reader", lambda uuid: nullcontext(lambda: Use((), 0, 0)))
    with open_bench(Setup(rules, suite, files, cases, engine)) as bench:
        grading = Grading(rules, suite, files, cases, engine, bench=bench)
        first, second = (grade(grading, hand_in, Progress()) for _ in range(2))
    assert first.tests[0].reference == second.tests[0].reference is not None
    for record in (first, second):
        assert record.machine.gpu_prepared == "idle"
