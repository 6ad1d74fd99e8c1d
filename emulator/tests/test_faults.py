"""Programs that fault or that a GPU would refuse: the same error code, at the same call, and a report that names the
place."""

import signal
from pathlib import Path
from typing import Any

import pytest

from cudaemu import Workplace, compile_program
from cudaemu.translate.writer import HANDLERS
from emulator.tests.programs import HERE, Execution, build, execute, host, nvcc

SOURCE = HERE / "faults.cu"


def fault(name: str, folder: Path, **environment: Any) -> Execution:
    return execute(build(SOURCE), name, folder=folder, **environment)


def line_of(text: str) -> int:
    """Number of the only line of faults.cu that holds `text`."""
    found = [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    assert len(found) == 1
    return found[0]


PAST_THE_END = {"relation": "just_past", "size": 256, "by": "cudaMalloc", "allocated_at": "faults.cu:53"}


@pytest.mark.parametrize(
    ("name", "code", "place", "kind", "facts"),
    [
        ("past_the_end", 700, "p[threadIdx.x + n] = 1", "past_the_end", {"did": "write", "bytes": 4, **PAST_THE_END}),
        ("read_past_the_end", 700, "p[threadIdx.x * 2]", "past_the_end", {"did": "read", **PAST_THE_END}),
        ("one_lane_outside", 700, "if (threadIdx.x == 17)", "past_the_end", {"past": 12, "size": 256}),
        ("null_pointer", 700, "*p = 1", "null_pointer", {"did": "write"}),
        ("host_pointer", 700, "p[threadIdx.x] = 7", "no_allocation", {"did": "write"}),
        ("misaligned", 716, "*(float4 *)(p + 4)", "misaligned", {"bytes": 16, "past": 4}),
        ("no_dynamic_shared_memory", 700, "s[threadIdx.x] = threadIdx.x", "past_shared", {"bytes": 4, "shared": 0}),
        ("use_after_free", 700, "p[threadIdx.x] = 7", "use_after_free", {"freed": "freed", "size": 256}),
    ],
)
def test_a_bad_access_faults_with_the_gpus_code_and_names_the_line(
    name: str, code: int, place: str, kind: str, facts: dict[str, object], tmp_path: Path
) -> None:
    done = fault(name, tmp_path)
    # The launch itself succeeds; the fault surfaces at the next synchronising call and stays.
    assert done.output.split("\n")[:4] == ["last 0", f"sync {code}", f"again {code}", f"malloc {code}"]
    (found,) = done.findings()
    assert (found["is"], found["file"], found["line"]) == (kind, "faults.cu", line_of(place))
    assert facts.items() <= found["facts"].items()


@pytest.mark.parametrize(
    ("name", "place", "kind", "other"),
    [
        ("freed_host_memory", "fwrite(h, 1, 0x8000", "host_use_after_free", "free(h);"),
        ("copy_not_awaited", "fwrite(h, 1, 4,", "copy_not_awaited", "else cudaMemcpyAsync"),
        ("copy_in_another_stream", "cudaMemcpy(h, p, 128", "copy_before_kernel", "plain<<<1, 32, 0, s>>>"),
    ],
)
def test_what_the_host_does_too_early_is_reported_with_both_lines(
    name: str, place: str, kind: str, other: str, tmp_path: Path
) -> None:
    (found,) = fault(name, tmp_path).findings()
    assert (found["is"], found["line"]) == (kind, line_of(place))
    assert found["facts"]["other_line"] == line_of(other)


def test_nothing_is_reported_of_copies_in_order(tmp_path: Path) -> None:
    assert fault("copies_in_order", tmp_path).findings() == []


def test_a_fault_names_the_thread_that_made_it(tmp_path: Path) -> None:
    (found,) = fault("one_lane_outside", tmp_path).findings()
    assert found["thread"] == [17, 0, 0] and found["block"] == [0, 0, 0]
    assert found["kernel"] == "one_lane_outside(int*, int)"


def test_a_failed_assertion_gives_error_710_and_its_text(tmp_path: Path) -> None:
    done = fault("assertion", tmp_path)
    assert "sync 710" in done.output
    assert "thread: [40,0,0] Assertion `threadIdx.x < n` failed." in done.errors


def test_a_trap_gives_a_launch_failure(tmp_path: Path) -> None:
    assert "sync 719" in fault("trap", tmp_path).output


def test_an_endless_loop_ends_at_its_limit_and_names_the_line(tmp_path: Path) -> None:
    done = fault("endless", tmp_path, GRADER_EMULATOR_KERNEL_SECONDS="0.5")
    assert "sync 702" in done.output
    (found,) = done.findings()
    assert (found["is"], found["line"]) == ("loop_never_ends", line_of("while (*flag == 0)"))


def test_lanes_that_wait_in_a_circle_end_at_the_limit(tmp_path: Path) -> None:
    done = fault("lanes_wait_in_a_circle", tmp_path, GRADER_EMULATOR_KERNEL_SECONDS="0.5")
    assert "sync 702" in done.output
    (found,) = done.findings()
    assert found["is"] == "endless_loop"
    assert found["line"] in (line_of("while (p[0] == 0)"), line_of("while (p[1] == 0)"))


def test_lanes_that_wait_in_a_function_for_lanes_outside_are_told_why(tmp_path: Path) -> None:
    done = fault("lock_in_a_function", tmp_path, GRADER_EMULATOR_KERNEL_SECONDS="0.5")
    (found,) = done.findings()
    assert (found["is"], found["line"]) == ("endless_in_function", line_of("while (atomicCAS(lock, 0, 1) != 0)"))


def test_a_deadlock_is_found_and_says_who_waits(tmp_path: Path) -> None:
    done = fault("deadlock", tmp_path)
    assert "sync 702" in done.output
    (found,) = done.findings()
    assert (found["is"], found["facts"]["waiting"], found["facts"]["arrived"]) == ("deadlock_barrier", 2, 32)


def test_recursion_without_end_is_a_fault_not_a_crash_of_the_grader(tmp_path: Path) -> None:
    done = fault("stack_overflow", tmp_path)
    assert [each["is"] for each in done.findings()] == ["local_overflow"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("too_many_threads", 1), ("zero_threads", 1), ("zero_blocks", 1), ("grid_too_high", 1), ("too_much_shared", 1),
        ("launch_bounds", 1),
    ],
)  # fmt: skip
def test_a_launch_that_a_gpu_refuses_is_refused_and_nothing_sticks(name: str, code: int, tmp_path: Path) -> None:
    done = fault(name, tmp_path)
    assert done.output.split("\n")[:4] == [f"last {code}", "sync 0", f"again {code}", "malloc 0"]
    assert not done.kernels()


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("double_free", ["first 0", "second 1"]),
        ("copy_too_long", ["copy 1", "last 1", "cleared 0"]),
        ("copy_direction", ["copy 1"]),
        ("copy_null", ["copy 1"]),
        ("out_of_memory", ["malloc 2"]),
        ("bad_device", ["set 101"]),
        ("reset", ["sync 700", "malloc 46", "sync 46"]),
    ],
)
def test_a_bad_call_of_the_runtime_gives_its_code(name: str, lines: list[str], tmp_path: Path) -> None:
    assert fault(name, tmp_path).output.split() == " ".join(lines).split()


def test_host_code_that_dereferences_a_device_pointer_is_named(tmp_path: Path) -> None:
    done = fault("host_dereference", tmp_path)
    assert done.exit_code == -11
    (found,) = done.findings()
    assert (found["is"], found["facts"]["offset"], found["facts"]["size"]) == ("host_dereference", 20, 256)


WRONG_TILE = """\
__global__ void neighbours(unsigned *out) {
    unsigned tile = 0xffu << (threadIdx.x / 8 * 8 ^ 8);
    out[threadIdx.x] = __ballot_sync(tile, 1);
}
int main() {
    unsigned *out;
    cudaMalloc(&out, 64);
    neighbours<<<1, 16>>>(out);
    return cudaDeviceSynchronize();
}
"""
DEEP = """
__device__ __noinline__ int sum(int n, const int *p) { return n == 0 ? p[0] : sum(n - 1, p) + p[n & 7]; }
__global__ void deep(int *p) { p[0] = sum(1 << 28, p); }
int main() {
    int *p;
    cudaMalloc(&p, 4096);
    deep<<<1, 1>>>(p);
    return cudaDeviceSynchronize();
}
"""
HOST_CRASH = """
#include <csignal>
__global__ void kernel() {}
int main(int argc, char **) {
    kernel<<<1, 32>>>();
    cudaDeviceSynchronize();
    if (argc > 1) raise(SIGILL);
    *(volatile int *)8 = 1;
}
"""
DEVICE_CRASH = """
__global__ void unlucky(int *p) {
    asm volatile("pmevent 1;");
    p[threadIdx.x] = 1;
}
int main() {
    int *p;
    cudaMalloc(&p, 4096);
    unlucky<<<8, 64>>>(p);
    return cudaDeviceSynchronize();
}
"""


@pytest.mark.parametrize(
    ("mistake", "number"), [("__builtin_trap();", signal.SIGILL), ("*(volatile int *)8 = 1;", signal.SIGSEGV)]
)
def test_a_crash_of_translated_code_is_the_emulators_and_says_so(
    mistake: str, number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(HANDLERS, "pmevent", lambda w, instr: w.line(mistake))
    (tmp_path / "crash.cu").write_text(DEVICE_CRASH)
    made = compile_program(
        [tmp_path / "crash.cu"], tmp_path / "crash", Workplace(tmp_path / "work"), nvcc=nvcc(), host=host(), flags=()
    )
    done = execute(made.path, folder=tmp_path)
    assert done.exit_code == -number
    (found,) = done.findings()
    assert found["is"] == "emulator_failed"
    assert found["facts"] == {"signal": number.name, "launched": "unlucky(int*)"}


@pytest.mark.parametrize(("arguments", "number"), [((), signal.SIGSEGV), (("raise",), signal.SIGILL)])
def test_a_crash_of_host_code_stays_the_programs(
    arguments: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    (tmp_path / "crash.cu").write_text(HOST_CRASH)
    done = execute(build(tmp_path / "crash.cu"), *arguments, folder=tmp_path)
    assert done.exit_code == -number
    assert not done.findings("emulator") and "emulator" not in done.errors


def test_calls_deeper_than_the_stack_are_the_programs_fault(tmp_path: Path) -> None:
    (tmp_path / "deep.cu").write_text(DEEP)
    done = execute(build(tmp_path / "deep.cu"), folder=tmp_path)
    (found,) = done.findings()
    assert (found["is"], found["facts"]["launched"]) == ("stack_overflow", "deep(int*)")


def test_lanes_whose_own_masks_do_not_name_them_are_reported(tmp_path: Path) -> None:
    (tmp_path / "neighbours.cu").write_text(WRONG_TILE)
    done = execute(build(tmp_path / "neighbours.cu"), folder=tmp_path)
    assert [(d["is"], d["line"], d["facts"]) for d in done.findings()] == [
        ("mask_without_caller", 3, {"lanes": "0x000000ff", "mask": "0x0000ff00"}),
        ("mask_without_caller", 3, {"lanes": "0x0000ff00", "mask": "0x000000ff"}),
    ]
