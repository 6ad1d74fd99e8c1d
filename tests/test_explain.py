"""Where a record's numbers come from, what forbids comparing two, and points that a person enters."""

import json
from pathlib import Path

import pytest

from grader.base.errors import UsageError
from grader.base.stopwatch import Stopwatch, overhead
from grader.base.verdict import Fault, Verdict
from grader.course.assignment import ReferenceRatio
from grader.records.points import enter, keep
from grader.records.record import (
    BaselineRecord,
    FloorRecord,
    FloorTerm,
    PartRecord,
    Record,
    Scores,
    TestRecord,
    TimedRunRecord,
    TimingRecord,
    read_records,
    write_records,
)
from grader.records.score import Evidence, log_speedup, reference_ratio
from grader.report.explain import compare, differences, explain, render_timings
from tests.support.records import practice_record

BASE = BaselineRecord(seconds=43.0, description="measured on one core", source_sha256="a" * 64, cpu="Xeon")


def timed(gpu_ms: float = 6.2, speedup: float | None = None, baseline: BaselineRecord = BASE) -> TestRecord:
    runs = tuple(TimedRunRecord(gpu_ms=ms, copy_ms=1, idle_ms=1, cpu_s=0.2, wall_s=0.4) for ms in (6.1, gpu_ms, 6.3))
    return TestRecord(
        name="t23", shape=(100, 4096, 32), verdict=Verdict.PASSED, fault=None, reason="", gpu_ms=gpu_ms,
        speedup=speedup if speedup is not None else baseline.seconds * 1e3 / gpu_ms, baseline=baseline,
        timing=TimingRecord(runs=runs, median_ms=gpu_ms, stopped="stable", rule="the rule"),
        floor=FloorRecord(
            ms=0.4, refuse_below_ms=0.2, limit="the exponentials", share=0.4 / gpu_ms, tflops=34.6,
            terms=(FloorTerm(name="the exponentials", ms=0.4, source="16 a clock and SM"),),
        ),
    )  # fmt: skip


def final(*tests: TestRecord, **changes: object) -> Record:
    parts = (
        PartRecord(part="correctness", points=60, max=60, how="0 of 30 tests failed"),
        PartRecord(part="speedup", points=20, max=20, how="geometric mean"),
        PartRecord(part="report", points=None, max=10, how="entered by an assistant"),
    )
    scores = Scores.model_validate({"total": 80, "max": 90, "correctness": 60, "speedup": 20, "report": None})
    return practice_record(tests=tests, practice=False, parts=parts, scores=scores, **changes)


def test_every_number_is_led_back_to_its_inputs() -> None:
    text = explain(final(timed()))
    assert "total 80 of 90 = 60 + 20" in text
    assert "GPU time 6.2 ms: median of 3 runs" in text
    assert "speedup 6,935.48 = 43 s / 6.2 ms" in text
    assert "the exponentials: 0.4 ms, from 16 a clock and SM" in text
    assert "DOES NOT FOLLOW" not in text


def test_a_number_that_does_not_follow_is_said_so() -> None:
    assert "DOES NOT FOLLOW: the recomputed value is 6935.48" in explain(final(timed(speedup=9999.0)))
    assert "DOES NOT FOLLOW" in explain(final(timed()).model_copy(update={"scores": Scores(total=99, max=90)}))


def test_an_interval_that_is_not_that_of_the_runs_is_said_so() -> None:
    times = (6.0, 6.1, 6.2, 6.3, 6.4, 6.5, 6.6)
    runs = tuple(TimedRunRecord(gpu_ms=ms, copy_ms=1, idle_ms=1, cpu_s=0.2, wall_s=0.4) for ms in times)

    def said(low: float) -> str:
        how = TimingRecord(
            runs=runs, median_ms=6.3, low_ms=low, high_ms=6.6, confidence=0.98, stopped="budget", rule="the rule"
        )
        return explain(final(timed(6.3).model_copy(update={"timing": how})))

    assert "98.0% interval 6 to 6.6" in said(6.0) and "DOES NOT FOLLOW" not in said(6.0)
    assert "DOES NOT FOLLOW: the recomputed value is 6;" in said(6.25)


def test_records_against_different_baselines_warn() -> None:
    one = final(timed())
    assert differences(one, one) == []
    slower = final(timed(baseline=BASE.model_copy(update={"seconds": 47.3})))
    assert "+10.0%" in differences(one, slower)[0]
    elsewhere = final(timed(baseline=BASE.model_copy(update={"cpu": "EPYC"})))
    assert "timed on Xeon and on EPYC" in differences(one, elsewhere)[0]
    assert compare(one, elsewhere, headings=("one", "other")).startswith("warning: another baseline")


def test_the_overhead_is_total_over_compiling_and_running() -> None:
    timings = {"compile": 2.0, "graded runs": 10.0, "timed runs": 8.0, "check": 1.0, "other": 1.0, "total": 22.0}
    assert overhead(timings) == pytest.approx(1.1)
    assert "wall time is 1.100 x" in render_timings(final(timed(), timings=timings))


def test_a_stage_does_not_count_what_was_added_inside_it() -> None:
    watch = Stopwatch()
    with watch.stage("around"):
        watch.add("inner", 1000.0)
    timings = watch.timings()
    assert timings["inner"] == 1000.0
    assert timings["around"] == pytest.approx(-1000.0, abs=1.0)


# ---- manual points ----------------------------------------------------------------------------------------------


def test_entered_points_make_the_total_and_survive_a_regrade(tmp_path: Path) -> None:
    entered = enter(final(timed()), {"report": 8.5}, "clear plots")
    assert entered.scores.total == 88.5
    assert entered.parts[2].how.endswith(": clear plots")
    path = tmp_path / "record.json"
    write_records([entered], path)
    again = keep(read_records(path), final(timed(gpu_ms=6.25)))
    assert again.scores.total == 88.5
    assert json.loads(again.model_dump_json())["scores"]["report"] == 8.5


def test_points_of_another_submission_are_not_taken_over() -> None:
    other = enter(final(timed()), {"report": 10})
    stranger = other.model_copy(update={"submission": other.submission.model_copy(update={"id": "bob"})})
    assert keep([stranger], final(timed())).parts[2].points is None


@pytest.mark.parametrize(
    ("given", "words"), [({"speedup": 20}, "not entered by hand"), ({"report": 11}, "from 0 to 10")]
)
def test_only_manual_parts_take_points_and_only_within_their_range(given: dict[str, float], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        enter(final(timed()), given)


# ---- a reference solution, and refused times --------------------------------------------------------------------

RATIO = ReferenceRatio(part="speed", points=20, kind="reference_ratio", tests="t23", reference="flash2.cu")


def evidence(*tests: TestRecord) -> Evidence:
    names = frozenset(test.name for test in tests)
    return Evidence(tests, names, {"speed": names, "speedup": names}, None, None, "")


@pytest.mark.parametrize(("factor", "points"), [(0.8, 20), (1.2, 20), (12**0.5 * 1.2**0.5, 10), (12, 0), (50, 0)])
def test_the_ratio_to_the_reference_is_full_within_a_fifth_and_logarithmic(factor: float, points: float) -> None:
    test = timed().model_copy(update={"gpu_ms": 6.2 * factor, "reference_ms": 6.2})
    assert reference_ratio(RATIO, evidence(test)).points == pytest.approx(points)


def test_without_a_reference_time_the_part_is_not_measured() -> None:
    part = reference_ratio(RATIO, evidence(timed()))
    assert part.points is None
    assert "not measured" in part.how


def test_a_refused_time_earns_nothing() -> None:
    refused = timed().model_copy(update={"timing_refused": "too fast", "speedup": None, "reference_ms": 6.2})
    assert reference_ratio(RATIO, evidence(refused)).points == 0
    wrong = timed().model_copy(update={"verdict": Verdict.WRONG_ANSWER, "fault": Fault.STUDENT, "speedup": None})
    assert reference_ratio(RATIO, evidence(wrong)).points == 0


def test_a_refused_time_counts_as_no_speedup() -> None:
    from grader.course.assignment import LogSpeedup

    rule = LogSpeedup(part="speedup", points=20, kind="log_speedup", tests="t23", zero_at=10, full_at=1000)
    part = log_speedup(rule, evidence(timed().model_copy(update={"timing_refused": "too fast", "speedup": None})))
    assert part.points == 0
    assert "1 of them failed or refused" in part.how
