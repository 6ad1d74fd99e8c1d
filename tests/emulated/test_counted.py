"""Counters by source line, as metrics and as advice: what one gets by hand, and what ncu measured on an H200."""

import csv
import json
import re
import struct
from array import array
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, Execution, build, execute
from emulator.tests.test_counters import SOURCE, counted
from grader.commands.inspection import ProfileStudy, counted_kernels
from grader.course.metrics import COUNTED, METRICS, named_metrics
from grader.findings import short_kernel
from grader.profiling.advice import advice, by_line
from grader.profiling.counters import counted_launches, instruction_mix
from grader.profiling.ncu import Launch, parse_csv
from grader.programs.trace import Trace, read_trace
from grader.report import profile as profile_report
from tests.support.course import ROOT

H200_COUNTERS = ROOT / "tests" / "fixtures" / "ncu" / "counters_h200.json"
H200 = ROOT / "tests" / "fixtures" / "ncu" / "naive_s05.csv"
H200_SHAPE = (5, 256, 64)


def line_of(text: str) -> int:
    (found,) = [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    return found


def trace_of(done: Execution, folder: Path) -> Trace:
    assert done.exit_code == 0
    trace = read_trace(folder / "trace.jsonl")
    assert trace.complete and not trace.unknown_lines and not trace.malformed_lines
    return trace


def advised(name: str, folder: Path) -> tuple[str, ...]:
    trace = trace_of(counted(name, folder), folder)
    return advice(trace, trace.kernels[0].name, lambda file: Path(file).name)


def test_conflicts_and_sectors_are_known_by_line_and_stride(tmp_path: Path) -> None:
    trace = trace_of(counted("shared_stride32", tmp_path), tmp_path)
    worst = by_line(a for a in trace.accesses if a.space == "shared")[0]
    assert (worst.line, worst.operation, worst.stride) == (line_of("// strided load"), "load", 128)
    assert (worst.requests, worst.units, worst.excess, worst.worst) == (1, 32, 31, 32)


def test_advice_on_conflicts_names_line_stride_and_padding(tmp_path: Path) -> None:
    (sentence,) = advised("shared_stride32", tmp_path)
    assert sentence.startswith(f"counters.cu:{line_of('// strided load')}: shared loads of 4 bytes take 32 wavefronts")
    assert "lanes are 128 bytes apart and use only 1 of 32 banks" in sentence
    assert "Pad rows of 32 words to 33" in sentence


def test_advice_on_strided_global_loads_says_what_would_do(tmp_path: Path) -> None:
    (sentence,) = advised("global_stride8", tmp_path)
    assert f":{line_of('// strided global load')}: global loads of 4 bytes touch 32 sectors" in sentence
    assert "where 4 are enough" in sentence
    assert "lanes are 32 bytes apart" in sentence


def test_advice_on_divergence_names_the_branch(tmp_path: Path) -> None:
    (sentence,) = advised("half_divergent", tmp_path)
    assert sentence.startswith(f"counters.cu:{line_of('// half the lanes')}: lanes of a warp diverge here 2 of 2 times")


@pytest.mark.parametrize("name", ["shared_stride33", "global_float4", "one_warp_of_two_idle", "barriers"])
def test_nothing_is_advised_where_nothing_is_poor(name: str, tmp_path: Path) -> None:
    assert advised(name, tmp_path) == ()


def test_a_trace_is_read_up_to_a_line_that_no_emulator_writes(tmp_path: Path) -> None:
    counted("shared_stride32", tmp_path)
    path = tmp_path / "trace.jsonl"
    whole = read_trace(path)
    forged = path.read_text().replace('"stride":128', '"stride":"128"', 1)
    path.write_text(forged)
    trace = read_trace(path)
    assert trace.malformed_lines == 1
    assert trace.accesses == whole.accesses[: len(trace.accesses)] != whole.accesses


@pytest.mark.parametrize("stages", [1, 2])
def test_a_wait_right_after_a_bulk_copy_is_advised_against(stages: int, tmp_path: Path) -> None:
    program = build(HERE / "hopper_counters.cu", flags=("-std=c++17",), count=True, target="sm_90a")
    trace = trace_of(execute(program, "1", str(stages), folder=tmp_path), tmp_path)
    assert ("right after" in " ".join(advice(trace, trace.kernels[0].name, str))) == (stages == 1)


# ---- beside ncu -----------------------------------------------------------------------------------------------------


def test_metrics_have_the_names_and_units_of_the_gpus_profile(tmp_path: Path) -> None:
    trace = trace_of(counted("half_divergent", tmp_path), tmp_path)
    (launch,) = counted_launches(trace)
    assert METRICS["inst_executed"].value(launch.values) == 48
    assert METRICS["branch_efficiency"].value(launch.values) == 0
    assert METRICS["warp_execution_efficiency"].value(launch.values) == pytest.approx(100 * 464 / (24 * 32))
    assert METRICS["gld_sectors_per_request"].value(launch.values) == 1
    assert METRICS["sm_efficiency"].value(launch.values) is None
    mix = instruction_mix(trace, trace.kernels[0].name)
    assert sum(mix.values()) == pytest.approx(1)
    assert mix["control"] == pytest.approx(4 / 48)


def test_the_report_has_lines_for_what_was_counted_and_advice_below(tmp_path: Path) -> None:
    trace = trace_of(counted("shared_stride32", tmp_path), tmp_path)
    kernels = counted_kernels(trace, None)
    study = ProfileStudy("hw4", "s01", (2, 128, 32), "emulated sm_80", None, named_metrics(COUNTED), kernels, ())
    text = profile_report.render(study)
    assert re.search(r"shared_load_bank_conflicts +31\.00\n", text)
    assert re.search(r"→ .*counters\.cu:\d+: shared loads", text)
    assert "gld_requests" not in text  # the kernel loads nothing from global memory
    rows = list(csv.DictReader(profile_report.as_csv(study).splitlines()))
    assert {row["metric"]: row["avg"] for row in rows}["shared_load_wavefronts"] == "32.0"
    (kernel,) = json.loads(profile_report.as_json(study))["kernels"]
    assert kernel["metrics"]["gld_requests"]["avg"] == 0
    assert kernel["accesses"][0]["stride"] == 128


@pytest.fixture(scope="module")
def naive_on_both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Launch, Launch]]:
    """By kernel of naive.cu: counted here, and measured on an H200 on the same shape."""
    folder = tmp_path_factory.mktemp("naive")
    batches, rows, width = H200_SHAPE
    values = array("f", [(i * 37 % 100) / 50 - 1 for i in range(3 * rows * width)])
    (folder / "in").write_bytes(struct.pack("<3i", *H200_SHAPE) + values.tobytes() * batches)
    program = build(ROOT / "reference" / "hw4" / "naive.cu", count=True, target="sm_90")
    done = execute(program, "in", "out", folder=folder)
    launches = counted_launches(trace_of(done, folder))
    here = {short_kernel(launch.kernel): launch for launch in launches}
    return {
        name: (here[name], launch) for launch in parse_csv(H200.read_text()) for name in [short_kernel(launch.kernel)]
    }


@pytest.mark.parametrize("kernel", ["scores_kernel", "softmax_kernel", "output_kernel"])
@pytest.mark.parametrize("name", ["gld_requests", "gld_sectors_per_request", "gst_sectors_per_request"])
def test_global_requests_and_sectors_are_those_of_an_h200(
    naive_on_both: dict[str, tuple[Launch, Launch]], kernel: str, name: str
) -> None:
    here, there = naive_on_both[kernel]
    assert METRICS[name].value(here.values) == pytest.approx(METRICS[name].value(there.values), rel=0.002)


@pytest.mark.parametrize("name", ["shared_load_wavefronts", "shared_store_wavefronts"])
def test_shared_wavefronts_are_those_of_an_h200(naive_on_both: dict[str, tuple[Launch, Launch]], name: str) -> None:
    here, there = naive_on_both["softmax_kernel"]
    rate = there.values[METRICS[name].ncu + ".per_second"]
    assert METRICS[name].value(here.values) == pytest.approx(rate * there.duration_ns / 1e9, rel=0.002)


SYNTHETIC = ("async_copies", "divergent", "strided_global", "strided_shared")
NOISE = {"words<33>"}
"""Where ncu counted six wavefronts that no address explains."""


@pytest.mark.parametrize("program", SYNTHETIC)
def test_counters_of_a_synthetic_program_are_those_of_an_h200(program: str, tmp_path: Path) -> None:
    """What `benchmarks/counters.py measure` recorded there."""
    there = json.loads(H200_COUNTERS.read_text())[program]
    source = ROOT / "benchmarks" / "counters" / f"{program}.cu"
    done = execute(build(source, count=True, target="sm_90"), folder=tmp_path)
    here: dict[str, Launch] = {
        short_kernel(launch.kernel): launch for launch in counted_launches(trace_of(done, tmp_path))
    }
    assert here.keys() == there.keys()
    for kernel in here.keys() - NOISE:
        counted_here = {name: METRICS[name].value(here[kernel].values) for name in there[kernel]}
        assert counted_here == there[kernel], kernel
