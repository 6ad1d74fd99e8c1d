"""Profiles from what ncu and the tracer wrote on an H200 (2026-11-21): flash2.cu, tiled.cu and naive.cu."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader.course.metrics import READ_BYTES, named_metrics
from grader.findings import short_kernel
from grader.profiling.kernel_profile import ProfileStudy, ScoredOccupancy, kernel_profiles, plan, scored_occupancy
from grader.profiling.kernel_time import counted_ns
from grader.profiling.ncu import Launch, parse_csv
from grader.profiling.occupancy import Demand, Occupancy
from grader.programs.trace import KernelEvent, Trace, read_trace
from grader.report.profile import render

FIXTURES = Path(__file__).parent / "fixtures"
SHOWN = named_metrics(("achieved_occupancy", "sm_efficiency", "gld_throughput", "shared_load_throughput"))


def ncu(name: str) -> tuple[Launch, ...]:
    return parse_csv((FIXTURES / "ncu" / f"{name}.csv").read_text())


def trace_of(*kernels: tuple[str, int, int]) -> Trace:
    """(name, launches, ns each)."""
    events, clock = [], 0
    for name, launches, each in kernels:
        for _ in range(launches):
            events.append(KernelEvent(name, (1, 1, 1), (1024, 1, 1), 32, 0, 0, 0, 7, np.array([(clock, clock + each)])))
            clock += each
    return Trace(kernels=tuple(events))


def test_recorded_output_is_read_whole_with_its_thousands_separators() -> None:
    launches = ncu("tiled_t23")
    assert len(launches) == 40
    assert launches[0].grid == (128, 1, 1)
    assert launches[0].block == (32, 32, 1)
    (flash2,) = ncu("flash2_t23")
    assert flash2.duration_ns == 6_198_176
    assert flash2.values["l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second"] == pytest.approx(828957164172.17)


def test_a_cut_off_last_line_is_left_out() -> None:
    text = (FIXTURES / "ncu" / "tiled_t23.csv").read_text()
    assert len(parse_csv(text[:-200])) == 39


@pytest.mark.parametrize("text", ["", "==PROF== nothing", '"a","b"\n', '"ID","x"\n"",""\n"0"\n'])
def test_what_is_not_ncus_output_gives_no_launches(text: str) -> None:
    assert parse_csv(text) == ()


def test_the_classic_tiled_kernel_has_the_published_achieved_occupancy() -> None:
    launches = ncu("tiled_t23")
    (kernel,) = kernel_profiles(trace_of((launches[0].kernel, 12_800, 7400)), launches, SHOWN, None)
    occupancy = kernel.ranges["achieved_occupancy"]
    assert 0.49 <= occupancy.low <= occupancy.mean <= occupancy.high <= 0.50
    assert (kernel.profiled, kernel.launches) == (40, 12_800)


def test_the_table_holds_ncus_values_in_the_units_students_know() -> None:
    launches = ncu("flash2_t23")
    (kernel,) = kernel_profiles(trace_of((launches[0].kernel, 1, 6_195_000)), launches, SHOWN, None)
    assert kernel.ranges["achieved_occupancy"].mean == pytest.approx(0.1822)
    assert kernel.ranges["sm_efficiency"].mean == pytest.approx(97.11)
    assert kernel.ranges["gld_throughput"].mean == pytest.approx(828.957, abs=0.001)
    # 118.5e9 wavefronts of 128 bytes a second
    assert kernel.ranges["shared_load_throughput"].mean == pytest.approx(15168.3, abs=0.1)


def test_top_stalls_and_roofline_position_come_from_the_counters() -> None:
    launches = ncu("flash2_t23")
    (kernel,) = kernel_profiles(trace_of((launches[0].kernel, 1, 6_195_000)), launches, SHOWN, None)
    assert [word for word, _, _ in kernel.stalls] == ["dispatch_stall", "wait", "short_scoreboard"]
    # (2 · 107.59e9 + 3.369e9 + 0.872e9) operations in 6.198 ms, over 200.6 MB of memory traffic
    assert kernel.tflops == pytest.approx(35.4, abs=0.1)
    assert kernel.intensity == pytest.approx(1094, abs=1)


@pytest.mark.parametrize(
    ("mangled", "full", "short"),
    [
        ("_Z9attentionILi32ELi4EEvPKfPf", "void attention<32, 4>(float const*, float*)", "attention<32,4>"),
        ("_ZN6flash29attentionILi32EEEvPKf", "void flash2::attention<32>(float const*)", "attention<32>"),
        (
            "_ZN31_GLOBAL__N__d4f1_6_hw4_cu_scale1kILb0EEEvPKf",
            "void (anonymous namespace)::k<false>(float const*)",
            "k<false>",
        ),
        ("softmax_kernel", "softmax_kernel", "softmax_kernel"),
    ],
)
def test_ncus_mangled_names_are_read_as_the_tracer_spells_them(mangled: str, full: str, short: str) -> None:
    csv = f'"ID","Kernel Name","Block Size","Grid Size"\n"","","",""\n"0","{mangled}","(64, 1, 1)","(8, 1, 1)"\n'
    (launch,) = parse_csv(csv)
    assert launch.kernel == full
    assert short_kernel(launch.kernel) == short


def test_few_launches_are_all_profiled_and_many_are_sampled_over_the_whole_run() -> None:
    assert plan(trace_of(("a", 20, 10), ("b", 20, 10)), 48) is None
    chosen = plan(trace_of(("a", 12_800, 10)), 48)
    assert chosen is not None
    assert len(chosen) == 48
    assert chosen[0] == 1
    assert 12_400 < chosen[-1] <= 12_800


def test_occupancy_is_weighed_by_time_and_small_kernels_have_no_say() -> None:
    launches = ncu("naive_s05")
    names = [launch.kernel for launch in launches]
    trace = trace_of((names[0], 80, 90_000), (names[1], 80, 500), (names[2], 80, 45_000))
    scored = scored_occupancy(kernel_profiles(trace, launches, SHOWN, None))
    # 73.07 % for two thirds of the time, 29.92 % for one third; the softmax's 0.4 % are left out
    assert scored.achieved == pytest.approx((0.7307 * 90 + 0.2992 * 45) / 135, abs=1e-4)
    assert any("softmax_kernel: left out, 0.37%" in said for said in scored.kernels)


def test_a_kernel_that_reads_nothing_cannot_raise_the_average() -> None:
    (work,) = ncu("flash2_t23")
    work = replace(work, values={**work.values, READ_BYTES: 5e8})
    idle = Launch("busy_waiting()", (132, 1, 1), (1024, 1, 1), {SHOWN[0].ncu: 100.0, READ_BYTES: 0.0})
    trace = trace_of((work.kernel, 1, 6_000_000), ("busy_waiting()", 1, 60_000_000))
    scored = scored_occupancy(kernel_profiles(trace, (work, idle), SHOWN, None))
    assert scored.achieved == pytest.approx(0.1822)
    assert any("reads no global memory" in said for said in scored.kernels)


def _filled(work_ms: float, filler_ms: float, *, beside: bool = False) -> ScoredOccupancy:
    """The score of flash2's kernel (0.1822) with a filler that reads memory and holds every warp."""
    (work,) = ncu("flash2_t23")
    work = replace(work, values={**work.values, READ_BYTES: 5e8})
    filler = Launch("filler(float*)", (132, 1, 1), (1024, 1, 1), {SHOWN[0].ncu: 100.0, READ_BYTES: 64.0})
    trace = trace_of(("filler(float*)", 1, int(filler_ms * 1e6)), (work.kernel, 1, int(work_ms * 1e6)))
    if beside:
        moved = [kernel._replace(times=kernel.times - kernel.times[0, 0]) for kernel in trace.kernels]
        trace = Trace(kernels=tuple(moved))
    return scored_occupancy(kernel_profiles(trace, (work, filler), SHOWN, None), trace.kernels)


def test_a_filler_that_reads_memory_changes_nothing_until_it_takes_as_long_as_the_work() -> None:
    assert _filled(6.0, 0.6).achieved == pytest.approx(0.1822)
    assert _filled(6.0, 5.9).achieved == pytest.approx(0.1822)
    assert _filled(6.0, 6.1).achieved == pytest.approx((0.1822 * 6.0 + 6.1) / 12.1)
    assert any("for half of the GPU time, occupancy is 0.182 or less" in said for said in _filled(6.0, 5.9).kernels)


def test_a_filler_beside_the_work_counts_only_for_the_time_it_runs_alone() -> None:
    assert _filled(6.0, 6.0, beside=True).achieved == pytest.approx(0.1822)
    assert _filled(6.0, 11.0, beside=True).achieved == pytest.approx(0.1822)


def test_work_on_several_streams_counts_once() -> None:
    a = KernelEvent("a", (1, 1, 1), (32, 1, 1), 32, 0, 0, 0, 7, np.array([(0, 10), (5, 15), (30, 40)]))
    events = [a, a._replace(name="b", stream=8, times=np.array([(10, 40)]))]
    assert counted_ns(events, {"a": 0.5, "b": 0.9}) == {"a": 25, "b": 15}
    assert counted_ns(events, {"b": 0.9}) == {"b": 30}


def _allows(share: float) -> Occupancy:
    return Occupancy(1, round(64 * share), 64, ("registers",), "")


def test_counters_that_say_more_than_the_launch_allows_give_no_points_but_a_person_to_look() -> None:
    (launch,) = ncu("flash2_t23")
    forged = replace(launch, values={**launch.values, SHOWN[0].ncu: 99.0})
    trace = trace_of((launch.kernel, 1, 6_000_000))
    scored = scored_occupancy(kernel_profiles(trace, (forged,), SHOWN, lambda demand: _allows(0.1875)))
    assert scored.achieved is None
    assert "0.990" in scored.reason
    assert "0.188" in scored.reason


def test_without_counters_the_launch_and_the_trace_remain() -> None:
    demands: list[Demand] = []

    def theory(demand: Demand) -> Occupancy:
        demands.append(demand)
        return _allows(0.5)

    trace = read_trace(FIXTURES / "trace" / "h200_naive_s01.jsonl")
    profiles = kernel_profiles(trace, (), SHOWN, theory)
    assert [short_kernel(profile.name) for profile in profiles] == ["output_kernel", "scores_kernel", "softmax_kernel"]
    assert profiles[0].share == pytest.approx(14144 / (6080 + 2080 + 14144))
    assert all(not profile.ranges and profile.achieved is None for profile in profiles)
    assert Demand(31, 256, 2048, 0) in demands
    assert scored_occupancy(profiles).achieved is None


def test_launches_that_do_not_differ_have_one_column_of_values() -> None:
    launches = ncu("flash2_t23")
    profiles = kernel_profiles(trace_of((launches[0].kernel, 1, 6_195_000)), launches, SHOWN, None)
    one = ProfileStudy("flash2", "t23", (100, 4096, 32), "H200", 6.195, SHOWN, profiles, ())
    head = next(line for line in render(one).splitlines() if "metric" in line)
    assert head.split() == ["metric", "value", "unit"]
    assert max(map(len, render(one).splitlines())) <= 100
    tiled = kernel_profiles(trace_of((ncu("tiled_t23")[0].kernel, 12_800, 7400)), ncu("tiled_t23"), SHOWN, None)
    several = ProfileStudy("tiled", "t23", (100, 4096, 32), "H200", 298, SHOWN, tiled, ())
    assert next(line for line in render(several).splitlines() if "metric" in line).split()[1:4] == ["min", "max", "avg"]
