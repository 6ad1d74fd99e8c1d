"""Timing: repeated, throttled and failing runs, and fresh inputs that are checked."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from grader.base.errors import MachineFault
from grader.base.stopwatch import Stopwatch
from grader.course.assignment import Assignment, TimingRules, load_assignment
from grader.course.catalogue import TestcaseFiles, generate, limits
from grader.course.testcase import Case, Suite, load_suite
from grader.gpu.outside_clock import Busy
from grader.gpu.state import GpuState
from grader.grading import one_test
from grader.operators.tolerance import Tolerance
from grader.records.disclosure import Doubt
from grader.timing import fresh_inputs
from grader.timing.evidence import Outside
from grader.timing.fresh_inputs import MOST_CHECKED_ROWS, FreshInput, fresh_input, some_rows
from grader.timing.measurement import TimedRun, Timer, Timing, repeat
from tests.support.machine import goes

SLOWED = GpuState(1500, 3201, 80, 690.0, ("power cap",))
FINE = GpuState(1980, 3201, 40, 200.0, ())


def a_run(gpu_ms: float, state: GpuState | None = FINE) -> TimedRun:
    return TimedRun(gpu_ms, copy_ms=1.0, idle_ms=0.5, cpu_s=0.2, wall_s=0.4, state=state)


def of(*times: float | TimedRun | Doubt) -> Callable[[], TimedRun | Doubt]:
    left: Iterator[float | TimedRun | Doubt] = iter(times)

    def once() -> TimedRun | Doubt:
        found = next(left)
        return a_run(found) if isinstance(found, float) else found

    return once


def frozen() -> float:
    return 0.0


def test_the_graded_run_warms_up_and_three_that_agree_are_enough() -> None:
    timing = repeat(of(10.0, 10.01, 9.99), TimingRules(), first=a_run(12.0), clock=frozen)
    assert timing.stopped == "agreed"
    assert timing.median_ms == 10.0
    assert [run.use for run in timing.runs] == ["warm-up"] + ["counted"] * 3
    assert timing.run_wall_s == pytest.approx(3 * 0.4)
    assert timing.interval is not None and timing.interval.low < 10.0 < timing.interval.high


def test_a_graded_run_that_agrees_with_the_next_two_counts_unless_the_gpu_was_throttled() -> None:
    timing = repeat(of(10.01, 9.99), TimingRules(), first=a_run(10.0), clock=frozen)
    assert [run.use for run in timing.runs] == ["counted"] * 3
    timing = repeat(of(10.01, 9.99, 10.0), TimingRules(), first=a_run(10.0, SLOWED), clock=frozen)
    assert [run.use for run in timing.runs] == ["warm-up"] + ["counted"] * 3


def test_without_a_graded_run_the_first_is_the_warm_up() -> None:
    timing = repeat(of(15.0, *[10.0] * 3), TimingRules(), clock=frozen)
    assert [run.gpu_ms for run in timing.counted] == [10.0] * 3


def test_a_slow_run_stays_in_the_result_marked_and_the_median_does_not_move() -> None:
    timing = repeat(of(10.0, 14.0, 10.0, *[10.01] * 9), TimingRules(), first=a_run(10.0), clock=frozen)
    assert timing.stopped == "stable"
    assert [run.gpu_ms for run in timing.runs if run.outlier] == [14.0]
    assert timing.median_ms == pytest.approx(10.01, abs=0.01)


def test_a_throttled_run_is_repeated_and_said_so() -> None:
    timing = repeat(of(10.0, a_run(13.0, SLOWED), 10.0), TimingRules(), first=a_run(10.0), clock=frozen)
    assert [run.use for run in timing.runs] == ["counted", "counted", "throttled", "counted"]
    assert timing.notes == ("a run was repeated because the GPU was throttled (power cap)",)
    assert timing.median_ms == 10.0


def test_a_gpu_that_is_always_throttled_is_timed_in_the_end_and_said_so() -> None:
    timing = repeat(of(*[a_run(13.0, SLOWED)] * 9), TimingRules(), first=a_run(13.0), clock=frozen)
    assert timing.stopped == "agreed"
    assert sum(run.use == "throttled" for run in timing.runs) == 3
    assert any("repeating did not help" in note for note in timing.notes)


def test_the_budget_ends_what_does_not_settle() -> None:
    now = iter(range(100))
    timing = repeat(of(*[10.0, 12.0] * 20), TimingRules(budget_s=9), first=a_run(10.0), clock=lambda: float(next(now)))
    assert timing.stopped == "budget"
    assert 6 <= len(timing.counted) <= 9
    assert timing.interval is not None
    assert (timing.interval.low, timing.interval.high) == (10.0, 12.0)


def test_a_budget_for_a_few_runs_gives_a_median_without_an_interval() -> None:
    now = iter(range(100))
    timing = repeat(
        of(10.0, 11.0, 12.0, 13.0), TimingRules(budget_s=3), first=a_run(10.0), clock=lambda: float(next(now))
    )
    assert timing.median_ms == 10.5  # of 10 and 11: the budget was spent before a third run
    assert timing.interval is None


def test_a_run_that_fails_on_a_fresh_input_ends_the_timing() -> None:
    timing = repeat(
        of(10.0, Doubt("on a fresh input its output is wrong", "batch 0, row 3")), TimingRules(), clock=frozen
    )
    assert timing.median_ms is None
    assert "fresh input" in str(timing.problem)


# ---- fresh inputs -----------------------------------------------------------------------------------------------


@pytest.fixture
def suite(hw4: Assignment) -> Suite:
    return load_suite(hw4.testcases_file)


SMALL = {"hw4": "s01", "backward": "s01", "half": "s06", "half_backward": "s03"}
"""One output tensor; several, each in one piece; packed half precision; gradients of grouped heads."""


@pytest.fixture(params=SMALL)
def case(request: pytest.FixtureRequest) -> Case:
    return load_suite(load_assignment(request.param).testcases_file).cases[SMALL[request.param]]


@pytest.fixture
def fresh(case: Case, tmp_path: Path) -> Iterator[FreshInput]:
    files, suite = TestcaseFiles(tmp_path / "files"), load_suite(load_assignment(case.assignment).testcases_file)
    generate(case, files, suite.seed(case))
    with fresh_input(case, files, suite) as made:
        yield made


def right_output(case: Case, source: Path, target: Path) -> None:
    operator, shape = case.operator, case.shape
    with source.open("rb") as file, target.open("wb") as output:
        for unit in range(operator.units(shape)):
            answer = operator.oracle(shape, operator.read_unit(file, shape, unit))
            for layout, values in zip(operator.output_layouts(shape), answer, strict=True):
                layout.write(output.fileno(), unit, values)


def tolerance(case: Case, tmp_path: Path) -> Tolerance:
    return limits(case, TestcaseFiles(tmp_path / "files"), load_assignment(case.assignment).tolerance)


def test_the_first_input_is_the_testcases_own_and_every_run_after_it_has_another(
    case: Case, fresh: FreshInput, tmp_path: Path
) -> None:
    own = TestcaseFiles(tmp_path / "files").input(case).read_bytes()
    assert fresh.path.read_bytes() == own
    seen = {own}
    for _ in range(4):
        fresh.renew()
        assert case.operator.read_header(fresh.path) == case.shape
        seen.add(fresh.path.read_bytes())
    assert len(seen) == 5


def test_a_right_output_is_believed_and_the_one_of_the_run_before_is_not(
    case: Case, fresh: FreshInput, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    for _ in range(3):
        answer = fresh.renew()
        right_output(case, fresh.path, output)
        assert answer.problem(output, tolerance(case, tmp_path)) is None
    assert "on a fresh input its output is wrong: " in str(fresh.renew().problem(output, tolerance(case, tmp_path)))


@pytest.mark.parametrize("case", ["hw4"], indirect=True)
def test_a_unit_that_takes_long_to_draw_serves_all_runs(
    fresh: FreshInput, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = [fresh.renew().drawn for _ in range(3)]
    monkeypatch.setattr(fresh_inputs, "LONG_DRAW_S", 0.0)
    slow = [fresh.renew() for _ in range(3)]
    assert len({id(drawn) for drawn in quick}) == 3
    assert len({id(answer.drawn) for answer in slow}) == 1
    right_output(case, fresh.path, tmp_path / "output")
    assert slow[-1].problem(tmp_path / "output", tolerance(case, tmp_path)) is None


@pytest.mark.parametrize("case", ["hw4"], indirect=True)
def test_one_wrong_value_anywhere_is_found(fresh: FreshInput, case: Case, tmp_path: Path) -> None:
    output = tmp_path / "output"
    answer = fresh.renew()
    right_output(case, fresh.path, output)
    right = np.fromfile(output, "<f4")
    for index in (0, len(right) // 2, len(right) - 1):
        wrong = right.copy()
        wrong[index] += 1
        wrong.tofile(output)
        place = case.operator.locate(case.shape, 4 * index)
        said = str(answer.problem(output, tolerance(case, tmp_path)))
        assert f"its output is wrong: {place}" in said


def test_what_is_wrong_on_a_hidden_input_is_said_without_values(case: Case, fresh: FreshInput, tmp_path: Path) -> None:
    output = tmp_path / "output"
    np.full(case.output_bytes // 4, 12345.5, "<f4").tofile(output)
    assert "12345" not in str(fresh.renew().problem(output, tolerance(case, tmp_path)))


@pytest.mark.parametrize(
    ("rows", "flops", "count"),
    [(5, 1e9, 5), (1000, 1e9, 8), (1000, 1e6, 300), (1 << 26, 2, MOST_CHECKED_ROWS)],  # the last is saxpy
)
def test_rows_to_check_are_chosen_at_random_and_are_not_too_many(rows: int, flops: float, count: int) -> None:
    chosen = some_rows(rows, flops)
    assert len(chosen) == count and (np.diff(chosen) > 0).all() and 0 <= chosen[0] <= chosen[-1] < rows
    assert count == rows or not np.array_equal(chosen, some_rows(rows, flops))


def test_an_input_that_nobody_waited_for_is_removed_too(suite: Suite, tmp_path: Path) -> None:
    case, files = suite.cases["s01"], TestcaseFiles(tmp_path / "files")
    generate(case, files, suite.seed(case))
    with fresh_input(case, files, suite) as fresh:
        folder = fresh.path.parent
    assert goes(folder)


def test_an_input_that_cannot_be_written_is_the_machines_fault(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case, files = suite.cases["s01"], TestcaseFiles(tmp_path / "files")
    generate(case, files, suite.seed(case))

    def full(descriptor: int, data: object, offset: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("grader.timing.fresh_inputs.write_exactly", full)
    with (
        fresh_input(case, files, suite) as fresh,
        pytest.raises(MachineFault, match=r"s01 \(.* bytes\) could not be written to .*: No space left"),
    ):
        fresh.renew()


@pytest.mark.parametrize("content", [b"", b"\0" * 100])
def test_an_output_of_the_wrong_size_is_named(fresh: FreshInput, case: Case, tmp_path: Path, content: bytes) -> None:
    output = tmp_path / "output"
    output.write_bytes(content)
    answer = fresh.renew()
    assert f"{len(content)} bytes, {case.output_bytes:,} expected" in str(
        answer.problem(output, tolerance(case, tmp_path))
    )
    assert "left no output file" in str(answer.problem(tmp_path / "none", tolerance(case, tmp_path)))


def test_an_output_that_is_no_file_is_named(fresh: FreshInput, case: Case, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    answer = fresh.renew()
    for name in ("folder", "pipe"):
        assert "its output is not a regular file" in str(answer.problem(tmp_path / name, tolerance(case, tmp_path)))


def test_the_next_input_is_opened_ahead_and_each_is_closed_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    log: list[str] = []

    @contextmanager
    def opened(_: object, name: str) -> Iterator[str]:
        log.append(f"open {name}")
        yield name.upper()
        log.append(f"close {name}")

    monkeypatch.setattr(one_test, "input_of", opened)
    ahead = partial(one_test.inputs_ahead, cast(Any, None), cast(Any, SimpleNamespace(program="built")))
    for name, value in ahead(cast(Any, "abc"), Stopwatch()):
        log.append(f"use {name}{value}")
    assert log == ["open a", "open b", "use aA", "close a", "open c", "use bB", "close b", "use cC", "close c"]
    log.clear()
    with closing(ahead(cast(Any, "abc"), Stopwatch())) as pairs:
        next(pairs)
    assert log == ["open a", "open b", "close a", "close b"]


def test_runs_that_are_timed_again_are_compared_with_the_graded_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden, clean = (Outside(Busy("GPM", 1.0, busy_s), 0.01, runs=2, launches=2) for busy_s in (0.9, 0.0))
    series = [Timing((), 5.0, None, "steady", outside=outside) for outside in (hidden, clean)]
    monkeypatch.setattr(Timer, "_series", lambda *words: series.pop(0))
    nothing = cast(Any, None)
    timing = Timer(nothing, nothing).time(nothing, nothing, nothing, wall_s=1, first=a_run(100.0))
    assert "tell these runs apart" in str(timing.problem)
