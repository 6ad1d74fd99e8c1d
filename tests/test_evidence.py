"""When a run's times are believed, and what is said when they are not."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from grader.base.verdict import Verdict
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of
from grader.gpu.outside_clock import Busy
from grader.programs.run import Run
from grader.programs.trace import KernelEvent, MemcpyEvent, Trace, TracerError
from grader.records.record import TestRecord, TimedRunRecord
from grader.timing.evidence import (
    Outside,
    Witness,
    computed_on_the_host,
    doubts,
    flags_of,
    hidden_work,
    other_kernel,
    tells_runs_apart,
    witness_of,
)
from tests.support.assignments import NAMES

SECOND = 1_000_000_000
WITNESS = Witness("cuda", wall_s=1.0, cpu_s=0.6, file_bytes=1 << 20, flops=1 << 30)


def kernel(start_ns: int, end_ns: int) -> KernelEvent:
    return KernelEvent("attention", (64, 1, 1), (128, 1, 1), 32, 0, 0, 0, 7, np.array([(start_ns, end_ns)]))


STARTS_NS = 6 * SECOND + np.arange(200_000)
MANY_LAUNCHES = kernel(0, 1)._replace(times=np.stack([STARTS_NS, STARTS_NS + 1], axis=1))
HONEST = Trace(
    kernels=(kernel(6 * SECOND, 6 * SECOND + SECOND // 10),),
    engine="cuda",
    clock_ns=6 * SECOND,
    starts=1,
    ends=1,
)


def test_an_honest_trace_raises_no_doubt() -> None:
    assert doubts(HONEST, WITNESS) == ()


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (None, "left no trace"),
        (replace(HONEST, malformed_lines=2), "2 lines that the tracer does not write"),
        (replace(HONEST, unknown_lines=1), "1 lines that the tracer does not write"),
        (replace(HONEST, truncated=True), "cut after 2,000,000 events"),
        (replace(HONEST, starts=2, ends=2), "begins 2 times"),
        (replace(HONEST, ends=0), "has no end"),
        (replace(HONEST, starts=0, ends=0, clock_ns=None), "has no beginning"),
        (replace(HONEST, engine="emulator"), "an engine other than cuda: emulator"),
        (replace(HONEST, dropped=3), "3 events are missing"),
        (replace(HONEST, tracer_errors=(TracerError("cuptiSubscribe", "busy"),)), "CUPTI refused the tracer"),
        (replace(HONEST, kernels=()), "No kernel ran on the GPU"),
        (replace(HONEST, computed_floats=False), "no floating-point arithmetic"),
        (replace(HONEST, kernels=(kernel(6 * SECOND, 8 * SECOND),)), "2 s of GPU time in 1 s of wall time"),
        (replace(HONEST, kernels=(kernel(5 * SECOND, 5 * SECOND + 10),)), "before the program began"),
        (replace(HONEST, kernels=(kernel(9 * SECOND, 9 * SECOND + 10),)), "after the program ended"),
        (replace(HONEST, kernels=(kernel(6 * SECOND, 6 * SECOND),)), "a kernel that takes no time"),
    ],
)
def test_a_trace_that_cannot_be_believed_is_said_to_be_so(trace: Trace | None, words: str) -> None:
    assert any(words in str(doubt) for doubt in doubts(trace, WITNESS))


def test_kernels_need_no_arithmetic_where_the_result_is_known_without_it() -> None:
    assert doubts(replace(HONEST, computed_floats=False), replace(WITNESS, flops=5)) == ()


@pytest.mark.parametrize("name", NAMES)
def test_only_an_output_of_floats_that_are_computed_needs_arithmetic_with_floats(name: str) -> None:
    suite = suite_of(load_assignment(name))
    case = max(suite.graded, key=lambda each: each.flops)
    run = Run(SimpleNamespace(wall_s=1.0, cpu_s=0.6), Path(), HONEST, "")  # type: ignore[arg-type]
    found = doubts(replace(HONEST, computed_floats=False), witness_of("cuda", case, run))
    integers = {"sort", "histogram", "bfs", "scan", "grayscale"}
    assert bool(found) == (name not in {*integers, "transpose"})


def test_a_trace_begun_at_another_time_was_not_written_by_this_run() -> None:
    during = ((100 * SECOND, 101 * SECOND), (6 * SECOND, 7 * SECOND))  # of two clocks, the tracer uses the second
    assert doubts(HONEST, replace(WITNESS, during_ns=during)) == ()
    for clock_ns in (3 * SECOND, 9 * SECOND, 0):
        moved = kernel(clock_ns, clock_ns + SECOND // 10)
        forged = replace(HONEST, clock_ns=clock_ns, kernels=(moved,))
        (said,) = doubts(forged, replace(WITNESS, during_ns=during))
        assert "before or after the run" in str(said)


def test_a_program_that_a_busy_machine_starts_late_is_believed() -> None:
    """Its wall time is that of the program; the run began, in the sandbox's start-up, long before."""
    assert doubts(HONEST, replace(WITNESS, during_ns=((0, 7 * SECOND),))) == ()


def test_a_program_that_computes_on_the_host_in_some_of_its_timed_runs_is_told() -> None:
    honest = TimedRunRecord(gpu_ms=100, copy_ms=0, idle_ms=0, cpu_s=0.6, wall_s=1)
    busy = honest.model_copy(update={"cpu_s": 8.0})
    assert computed_on_the_host(HONEST, WITNESS, 59.0, [honest, honest]) is None
    assert "8 s of processor time" in str(computed_on_the_host(HONEST, WITNESS, 59.0, [honest, busy]))


def test_much_processor_time_for_work_of_that_size_is_told() -> None:
    busy = replace(WITNESS, cpu_s=8.0)
    said = str(computed_on_the_host(HONEST, busy, sequential_s=59.0))
    assert "8 s of processor time" in said
    assert "the sequential program needs 59 s" in said


def test_seconds_of_copying_the_same_bytes_allow_no_seconds_of_processor_time() -> None:
    copying = replace(HONEST, memcpys=(MemcpyEvent("HtoD", 1 << 40, 7 * SECOND, 11 * SECOND, 7),))
    few = Witness("cuda", wall_s=8.0, cpu_s=5.0, file_bytes=20 << 20)
    assert "5 s of processor time" in str(computed_on_the_host(copying, few, sequential_s=59.0))
    assert computed_on_the_host(copying, replace(few, file_bytes=400 << 20), sequential_s=59.0) is None


def test_where_start_up_is_quick_less_processor_time_is_allowed() -> None:
    vectors = replace(WITNESS, cpu_s=2.2)
    assert computed_on_the_host(HONEST, vectors, 32.0, startup_cpu_s=None) is None
    assert "2.2 s of processor time" in str(computed_on_the_host(HONEST, vectors, 32.0, startup_cpu_s=0.2))
    assert computed_on_the_host(HONEST, vectors, 32.0, startup_cpu_s=9.0) is None, "never more than is allowed anywhere"


@pytest.mark.parametrize(
    ("trace", "cpu_s", "file_bytes", "sequential_s"),
    [
        (HONEST, 0.9, 210 << 20, 59.0),  # start-up, a file of 200 MB
        (HONEST, 5.0, 944 << 20, 11.0),  # a gigabyte read, converted and copied
        (replace(HONEST, kernels=(kernel(6 * SECOND, 12 * SECOND),)), 8.0, 1 << 20, 100.0),  # spinning while it waits
        (replace(HONEST, kernels=(MANY_LAUNCHES,)), 5.5, 0, 59.0),
    ],
)
def test_what_an_honest_program_spends_on_the_host_is_not_held_against_it(
    trace: Trace, cpu_s: float, file_bytes: int, sequential_s: float
) -> None:
    assert computed_on_the_host(trace, Witness("cuda", 8.0, cpu_s, file_bytes), sequential_s) is None


def test_flags_name_the_tests_they_were_raised_on_once() -> None:
    tests = [
        TestRecord(name=name, shape=(2, 128, 32), verdict=Verdict.PASSED, fault=None, reason="", flags=("Odd.",))
        for name in ("t01", "t02")
    ]
    assert flags_of(tests) == ("t01, t02: Odd.",)


# ---- what was seen from outside -----------------------------------------------------------------------------------


def outside(busy_ms: float, explained_ms: float, runs: int = 7, interval_s: float = 3.0, launches: int = 7) -> Outside:
    return Outside(Busy("GPM", interval_s, busy_ms / 1e3), explained_ms / 1e3, runs, launches)


@pytest.mark.parametrize(
    ("busy_ms", "explained_ms", "launches"),
    [
        (7 * 4.2, 7 * 1.3, 7),  # hopper.cu on t23: 1.3 ms traced, 1.1 to 2.9 ms more for the context
        (7 * 318 * 1.06, 7 * 318, 7),
        (7 * (1046 + 77), 7 * 1046, 7 * 40_000),  # tiled.cu on t13, launch after launch
        (0.0, 7 * 318, 7),
    ],
)
def test_what_honest_programs_need_beyond_their_kernels_is_believed(
    busy_ms: float, explained_ms: float, launches: int
) -> None:
    assert hidden_work(outside(busy_ms, explained_ms, launches=launches)) is None


@pytest.mark.parametrize(("busy_ms", "explained_ms"), [(7 * 310, 7 * 0.4), (7 * 310, 7 * 150), (7 * 12, 7 * 4)])
def test_work_that_the_traces_do_not_explain_is_not_believed(busy_ms: float, explained_ms: float) -> None:
    assert "the tracer did not see all of its work" in str(hidden_work(outside(busy_ms, explained_ms)))


def test_a_program_that_is_much_slower_when_it_is_graded_than_when_it_is_timed_is_not_believed() -> None:
    assert tells_runs_apart(310.0, 302.0) is None
    assert tells_runs_apart(1.9, 0.4) is None
    said = str(tells_runs_apart(310.0, 4.6))
    assert "310 ms" in said and "4.6 ms" in said


def test_an_occupancy_that_timed_runs_did_not_have_is_not_believed() -> None:
    assert other_kernel(0.498, 0.497) == ""
    assert other_kernel(0.116, 0.123) == ""
    said = other_kernel(0.76, 0.45)
    assert "0.760" in said and "0.450" in said
