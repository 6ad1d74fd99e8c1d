"""Counters are what one gets by hand, and what ncu measured on an H200."""

import csv
import json
import re
import struct
from array import array
from pathlib import Path
from typing import Any

import pytest

from emulator.tests.programs import HERE, Execution, build, execute
from grader.commands.inspection import ProfileStudy, counted_kernels
from grader.course.metrics import COUNTED, METRICS, named_metrics
from grader.findings import short_kernel
from grader.profiling.advice import advice, by_line
from grader.profiling.counters import counted_launches, instruction_mix
from grader.profiling.ncu import Launch, parse_csv
from grader.programs.trace import Trace, read_trace
from grader.report import profile as profile_report

SOURCE = HERE / "counters.cu"
ROOT = HERE.parent.parent
H200_COUNTERS = ROOT / "tests" / "fixtures" / "ncu" / "counters_h200.json"
H200 = ROOT / "tests" / "fixtures" / "ncu" / "naive_s05.csv"
H200_SHAPE = (5, 256, 64)


def line_of(text: str) -> int:
    (found,) = [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    return found


def counted(name: str, folder: Path, **environment: Any) -> Execution:
    done = execute(build(SOURCE, count=True), name, folder=folder, **environment)
    assert done.exit_code == 0, done.output + done.errors
    return done


def counters(done: Execution) -> dict[str, int]:
    (kernel,) = done.kernels()
    result: dict[str, int] = kernel["counters"]
    return result


SHARED = {
    # requests, wavefronts, bank conflicts of the load: 32 banks of 4 bytes, one word of each in a wavefront
    "shared_stride1": (1, 1, 0),
    "shared_stride2": (1, 2, 1),
    "shared_stride32": (1, 32, 31),
    "shared_stride33": (1, 1, 0),
    "shared_broadcast": (1, 1, 0),
    # of 16 bytes a lane, quarters of a warp are served: at best four wavefronts, two where neighbours share
    "shared_float4": (1, 4, 0),
    "shared_float4_broadcast": (1, 2, 0),
    "shared_float4_pairs": (1, 2, 0),
    "shared_float4_rows": (1, 32, 28),
    "shared_float4_padded": (1, 4, 0),
    # of 8 bytes, halves
    "shared_float2": (1, 2, 0),
    # four loads of 4 bytes that ptxas makes one of 16
    "four_words_of_a_row": (1, 32, 28),
    # which it cannot where a store between them may change what they read; the last load has no conflict
    "four_words_with_stores_between": (5, 4 * 32 + 1, 4 * 31),
}


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_load_takes_a_wavefront_for_each_word_that_wants_the_same_bank(name: str, tmp_path: Path) -> None:
    found = counters(counted(name, tmp_path))
    names = ("shared_load_requests", "shared_load_wavefronts", "shared_load_bank_conflicts")
    assert tuple(found[n] for n in names) == SHARED[name]


def test_loads_and_stores_have_conflicts_of_their_own(tmp_path: Path) -> None:
    found = counters(counted("shared_store_stride2", tmp_path))
    assert (found["shared_store_requests"], found["shared_store_wavefronts"]) == (1, 2)
    assert found["shared_store_bank_conflicts"] == 1
    assert (found["shared_load_wavefronts"], found["shared_load_bank_conflicts"]) == (1, 0)


@pytest.mark.parametrize(
    ("name", "operation", "requests", "sectors", "size"),
    [
        ("global_float4", "load", 2, 32, 1024),  # 512 bytes of each of two warps
        ("global_float4", "store", 2, 32, 1024),
        ("global_stride2", "load", 1, 8, 128),
        ("global_stride8", "load", 1, 32, 128),
        ("global_broadcast", "load", 1, 1, 128),
        ("global_stride2", "store", 1, 4, 128),
        ("global_misaligned", "store", 1, 5, 128),
    ],
)
def test_a_global_request_touches_each_sector_once(
    name: str, operation: str, requests: int, sectors: int, size: int, tmp_path: Path
) -> None:
    found = counters(counted(name, tmp_path))
    names = (f"global_{operation}_{what}" for what in ("requests", "sectors", "bytes"))
    assert tuple(found[n] for n in names) == (requests, sectors, size)


def test_both_sides_of_a_divergent_branch_are_issued_to_half_the_lanes(tmp_path: Path) -> None:
    found = counters(counted("half_divergent", tmp_path))
    # Two warps: 4 instructions up to the branch and the last one with all lanes, 14 and 5 with half of them.
    assert found["instructions"] == 2 * (4 + 14 + 5 + 1)
    assert found["thread_instructions"] == 2 * (5 * 32 + 19 * 16)
    assert (found["branches"], found["divergent_branches"]) == (2, 2)


def test_a_branch_that_whole_warps_take_is_not_divergent(tmp_path: Path) -> None:
    found = counters(counted("one_warp_of_two_idle", tmp_path))
    assert (found["branches"], found["divergent_branches"]) == (2, 0)
    assert found["thread_instructions"] == 32 * found["instructions"]


def test_lanes_that_the_launch_does_not_fill_do_not_count(tmp_path: Path) -> None:
    found = counters(counted("polynomial", tmp_path))  # two blocks of a full and a half warp
    assert found["thread_instructions"] == 24 * found["instructions"]


def test_barriers_are_counted_for_every_warp(tmp_path: Path) -> None:
    assert counters(counted("barriers", tmp_path))["warp_barrier"] == 3 * 4 * 5


def test_operations_are_counted_for_every_thread_and_by_precision(tmp_path: Path) -> None:
    single = counters(counted("polynomial", tmp_path))
    assert (single["flop_sp_fma"], single["flop_sp_add"], single["flop_sp_mul"]) == (96 * 10, 96, 96)
    double = counters(counted("doubles", tmp_path))
    assert (double["flop_dp_mul"], double["flop_dp_add"], double["flop_dp_fma"]) == (32, 32, 0)


def test_atomics_are_requests_of_their_own(tmp_path: Path) -> None:
    found = counters(counted("global_atomics", tmp_path))
    assert found["global_reduction_requests"] + found["global_atomic_requests"] == 2
    assert found["global_reduction_sectors"] + found["global_atomic_sectors"] == 2
    assert found["global_load_requests"] == found["global_store_requests"] == 0


def test_lanes_that_share_the_address_of_a_shared_atomic_wait_for_one_another(tmp_path: Path) -> None:
    found = counters(counted("shared_histogram", tmp_path))
    names = ("atomic", "reduction")
    assert sum(found[f"shared_{n}_requests"] for n in names) == 1
    assert sum(found[f"shared_{n}_same_address"] for n in names) == 7  # eight lanes on each of four bins


def test_local_memory_is_interleaved_so_that_a_warp_reads_whole_sectors(tmp_path: Path) -> None:
    found = counters(counted("local_array", tmp_path))
    assert found["local_load_bytes"] == 10 * 32 * 4
    assert found["local_load_sectors"] == 10 * 4
    assert found["local_store_bytes"] == 64 * 32 * 4
    assert found["local_store_sectors"] == 64 * 4


def test_the_number_of_worker_threads_changes_no_counter(tmp_path: Path) -> None:
    one = counters(counted("polynomial", tmp_path, GRADER_EMULATOR_THREADS="1"))
    assert one == counters(counted("polynomial", tmp_path, GRADER_EMULATOR_THREADS="3"))


def test_the_usual_build_counts_nothing(tmp_path: Path) -> None:
    done = execute(build(SOURCE), "barriers", folder=tmp_path)
    assert counters(done) == {}


# ---- by source line ------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("blocks", "stages"), [(1, 1), (1, 2), (2, 1)])
def test_products_of_warpgroups_and_bulk_copies_are_counted(blocks: int, stages: int, tmp_path: Path) -> None:
    program = build(HERE / "hopper_counters.cu", flags=("-std=c++17",), count=True, target="sm_90a")
    done = execute(program, str(blocks), str(stages), folder=tmp_path)
    assert done.exit_code == 0, done.output + done.errors
    found = counters(done)
    tiles, tile_bytes, warps = 8, 4096, 4
    assert found["wgmma"] == blocks * tiles * warps
    assert found["wgmma_from_registers"] == 0
    assert found["flop_tensor"] == blocks * tiles * 2 * 64 * 8 * 16
    assert found["bulk_load_bytes"] == tiles * tile_bytes  # from global memory: a multicast reads them once
    assert found["bulk_multicast_bytes"] == (blocks - 1) * tiles * tile_bytes
    assert found["bulk_store_bytes"] == blocks * 256
    assert found["bulk_stages"] == stages
    assert found["barrier_object_waits"] == blocks * tiles * warps
    assert found["cluster_blocks"] == (blocks if blocks > 1 else 0)
    trace = trace_of(done, tmp_path)
    assert ("right after" in " ".join(advice(trace, trace.kernels[0].name, str))) == (stages == 1)


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
