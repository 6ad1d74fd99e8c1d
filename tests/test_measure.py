"""Timing: repeated, throttled and failing runs, and fresh inputs that are checked."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from grader.assignment import Assignment
from grader.errors import MachineFault
from grader.fresh import FreshInput, fresh_input
from grader.gpu_state import GpuState
from grader.measure import TimedRun, repeat
from grader.stopping import Rule
from grader.testcase import Case, Suite, load_suite
from tests.conftest import goes

SLOWED = GpuState(5, 1500, 1400, 3201, 80, 690.0, ("power cap",))
FINE = GpuState(5, 1980, 1980, 3201, 40, 200.0, ())


def a_run(gpu_ms: float, state: GpuState | None = FINE) -> TimedRun:
    return TimedRun(gpu_ms, copy_ms=1.0, idle_ms=0.5, cpu_s=0.2, wall_s=0.4, state=state)


def of(*times: float | TimedRun | str) -> Callable[[], TimedRun | str]:
    left: Iterator[float | TimedRun | str] = iter(times)

    def once() -> TimedRun | str:
        found = next(left)
        return a_run(found) if isinstance(found, float) else found

    return once


def frozen() -> float:
    return 0.0


def test_the_graded_run_warms_up_and_six_that_agree_are_enough() -> None:
    timing = repeat(of(*[10.0] * 6), Rule(), first=a_run(12.0), clock=frozen)
    assert timing.stopped == "stable"
    assert timing.median_ms == 10.0
    assert [run.use for run in timing.runs] == ["warm-up"] + ["counted"] * 6
    assert timing.run_wall_s == pytest.approx(6 * 0.4)


def test_without_a_graded_run_the_first_is_the_warm_up() -> None:
    timing = repeat(of(15.0, *[10.0] * 6), Rule(), clock=frozen)
    assert [run.gpu_ms for run in timing.counted] == [10.0] * 6


def test_a_slow_run_stays_in_the_result_marked_and_the_median_does_not_move() -> None:
    timing = repeat(of(10.0, 10.0, 14.0, *[10.01] * 9), Rule(), first=a_run(10.0), clock=frozen)
    assert timing.stopped == "stable"
    assert [run.gpu_ms for run in timing.runs if run.outlier] == [14.0]
    assert timing.median_ms == pytest.approx(10.01, abs=0.01)


def test_a_throttled_run_is_repeated_and_said_so() -> None:
    timing = repeat(of(10.0, a_run(13.0, SLOWED), *[10.0] * 5), Rule(), first=a_run(10.0), clock=frozen)
    assert [run.use for run in timing.runs] == ["warm-up", "counted", "throttled"] + ["counted"] * 5
    assert timing.notes == ("a run was repeated because the GPU was slowed (power cap)",)
    assert timing.median_ms == 10.0


def test_a_gpu_that_is_always_throttled_is_timed_in_the_end_and_said_so() -> None:
    timing = repeat(of(*[a_run(13.0, SLOWED)] * 9), Rule(), first=a_run(13.0), throttled_retries=3, clock=frozen)
    assert timing.stopped == "stable"
    assert sum(run.use == "throttled" for run in timing.runs) == 3
    assert any("repeating did not help" in note for note in timing.notes)


def test_the_budget_ends_what_does_not_settle() -> None:
    now = iter(range(100))
    timing = repeat(of(*[10.0, 12.0] * 20), Rule(budget_s=9), first=a_run(10.0), clock=lambda: float(next(now)))
    assert timing.stopped == "budget"
    assert 6 <= len(timing.counted) <= 9
    assert timing.interval is not None
    assert (timing.interval.low, timing.interval.high) == (10.0, 12.0)


def test_a_budget_for_a_few_runs_gives_a_median_without_an_interval() -> None:
    now = iter(range(100))
    timing = repeat(of(10.0, 11.0, 12.0, 13.0), Rule(budget_s=3), first=a_run(10.0), clock=lambda: float(next(now)))
    assert timing.median_ms == 10.5  # of 10 and 11: the budget was spent before a third run
    assert timing.interval is None


def test_a_run_that_fails_on_a_fresh_input_ends_the_timing() -> None:
    timing = repeat(of(10.0, "on a fresh input its output is wrong: batch 0, row 3"), Rule(), clock=frozen)
    assert timing.median_ms is None
    assert "fresh input" in timing.problem


# ---- fresh inputs -----------------------------------------------------------------------------------------------


@pytest.fixture
def suite(hw4: Assignment) -> Suite:
    return load_suite(hw4.testcases_file)


def right_output(case: Case, source: Path, target: Path) -> None:
    with source.open("rb") as file, target.open("wb") as output:
        for unit in range(case.operator.units(case.shape)):
            tensors = case.operator.read_unit(file, case.shape, unit)
            output.write(case.operator.oracle(case.shape, tensors)[0].astype("<f4").tobytes())


def test_every_run_has_another_input_of_the_same_shape(suite: Suite) -> None:
    case = suite.cases["s01"]
    with fresh_input(case, lambda nonce: suite.fresh_seed(case, nonce)) as fresh:
        fresh.renew()
        assert case.operator.read_header(fresh.path) == case.shape
        seen = {fresh.path.read_bytes()}
        for _ in range(4):
            fresh.renew()
            seen.add(fresh.path.read_bytes())
        values = np.frombuffer(fresh.path.read_bytes()[12:], dtype="<f4")
    assert len(seen) == 5
    assert -3 <= values.min() < -2.9 < 2.9 < values.max() < 3
    assert goes(fresh.path)


def test_a_right_output_is_believed_and_the_one_of_the_run_before_is_not(suite: Suite, tmp_path: Path) -> None:
    case = suite.cases["s01"]
    with fresh_input(case, lambda nonce: suite.fresh_seed(case, nonce)) as fresh:
        fresh.renew()
        output = tmp_path / "output"
        right_output(case, fresh.path, output)
        assert fresh.problem(output, 5e-3) == ""
        fresh.renew()
        assert "on a fresh input its output is wrong: batch" in fresh.problem(output, 5e-3)


@pytest.mark.parametrize("content", [b"", b"\0" * 100])
def test_an_output_of_the_wrong_size_is_named(suite: Suite, tmp_path: Path, content: bytes) -> None:
    case = suite.cases["s01"]
    output = tmp_path / "output"
    output.write_bytes(content)
    with fresh_input(case, lambda nonce: suite.fresh_seed(case, nonce)) as fresh:
        fresh.renew()
        assert f"{len(content)} bytes, 32,768 expected" in fresh.problem(output, 5e-3)
        assert "left no output file" in fresh.problem(tmp_path / "none", 5e-3)


def test_an_input_that_nobody_waited_for_is_removed_too(suite: Suite) -> None:
    case = suite.cases["s01"]
    with fresh_input(case, lambda nonce: suite.fresh_seed(case, nonce)) as fresh:
        pass
    assert goes(fresh.path.parent)


def test_an_input_that_cannot_be_written_is_the_machines_fault(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: FreshInput, unit: int, values: np.ndarray) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FreshInput, "_write", full)
    case = suite.cases["s01"]
    with (
        pytest.raises(MachineFault, match=r"s01 \(.* bytes\) could not be written to .*: No space left"),
        fresh_input(case, lambda nonce: suite.fresh_seed(case, nonce)) as fresh,
    ):
        fresh.renew()


def test_an_output_that_is_no_file_is_named(suite: Suite, tmp_path: Path) -> None:
    case = suite.cases["s01"]
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with fresh_input(case, lambda nonce: suite.fresh_seed(case, nonce)) as fresh:
        fresh.renew()
        for name in ("folder", "pipe"):
            assert "its output is no regular file" in fresh.problem(tmp_path / name, 5e-3)
