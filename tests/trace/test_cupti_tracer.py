"""The CUPTI tracer, built by `build_tracer` and driven by a CUPTI of our own (fake_cupti.cpp), without a GPU.

What the real CUPTI and driver do with it can be seen on a CUDA machine only.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cudaemu.process import Completed
from cudaemu.process import run_plainly as run
from grader.base.errors import GraderFault
from grader.programs.trace import PATH_VARIABLE, ApiError, Trace, TracerError, read_trace
from grader.programs.trace.tracer import build_tracer

HERE = Path(__file__).parent


def cupti_include() -> Path:
    """The folder with cupti.h, of a toolkit or of NVIDIA's packages for Python."""
    nvcc = shutil.which("nvcc")
    candidates = [Path(nvcc).resolve().parents[1] / "include"] if nvcc else []
    candidates += [Path("/usr/local/cuda/include"), Path("/usr/local/cuda/extras/CUPTI/include")]
    candidates += [folder / "include" for root in sys.path for folder in Path(root).glob("nvidia/*")]
    for folder in candidates:
        if (folder / "cupti.h").exists() and (folder / "cuda.h").exists():
            return folder
    pytest.skip("the tracer needs cupti.h to be built: install a CUDA toolkit or nvidia-cuda-cupti")


@dataclass(frozen=True)
class Played:
    """A part of traced_program.cpp, played under the tracer."""

    exit_code: int
    output: bytes
    trace: Trace


Play = Callable[..., Played]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The tracer and the program, linked with the fake CUPTI."""
    include, folder = cupti_include(), tmp_path_factory.mktemp("tracer")
    compiler = ["g++", "-std=c++17", "-O1", "-isystem", str(include)]
    fake = folder / "libcupti.so"
    for command in (
        [*compiler, "-shared", "-fPIC", "-Wl,-soname,libcupti.so", "-o", str(fake), str(HERE / "fake_cupti.cpp")],
        [*compiler, "-o", "program", str(HERE / "traced_program.cpp"), str(fake), f"-Wl,-rpath,{folder}", "-ldl"],
    ):
        done = run(command, folder)
        assert done.exit_code == 0, done.output
    tracer = build_tracer(
        folder / "libtracer.so", cupti_include=include, cuda_include=include, cupti_library=fake, cxx="g++", run=run
    )
    return tracer, folder / "program"


@pytest.fixture
def play(built: tuple[Path, Path], tmp_path: Path) -> Play:
    tracer, program = built

    def play_part(part: str, **environment: str) -> Played:
        # No LD_LIBRARY_PATH: the tracer must find CUPTI by itself.
        settings = {"PATH": os.environ["PATH"], "CUDA_INJECTION64_PATH": str(tracer)}
        settings |= {PATH_VARIABLE: str(tmp_path / "trace.jsonl")} | environment
        done = subprocess.run(
            [program, part], env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=tmp_path
        )
        return Played(done.returncode, done.stdout, read_trace(tmp_path / "trace.jsonl"))

    return play_part


def test_every_kind_of_event_is_written_so_that_the_reader_takes_it(play: Play) -> None:
    played = play("everything")

    trace = played.trace
    assert trace.complete and trace.malformed_lines == 0 and trace.dropped == 0
    (kernel,) = trace.kernels
    assert kernel.name == "attention(float const*, float*, int, float)"
    assert (kernel.grid, kernel.block, kernel.registers) == ((128, 1, 1), (32, 32, 1), 56)
    assert (kernel.static_shared_bytes, kernel.dynamic_shared_bytes, kernel.local_bytes) == (16640, 1024, 8)
    assert (kernel.times.tolist(), kernel.stream) == ([[100, 400]], 7)
    assert [(copy.direction, copy.bytes) for copy in trace.memcpys] == [("HtoD", 4096), ("DtoH", 1024)]
    assert [memset.bytes for memset in trace.memsets] == [512]
    assert (trace.engine, trace.clock_ns) == ("cuda", 1234567)


def test_the_program_prints_and_returns_what_it_would_without_the_tracer(play: Play) -> None:
    played = play("everything")

    assert (played.exit_code, played.output) == (0, b"")


def test_a_hundred_thousand_kernels_are_all_there(play: Play) -> None:
    trace = play("many_kernels").trace

    assert trace.launch_count == 100_000 and trace.complete
    assert trace.gpu_ns == 500_000
    assert len(trace.kernels) < 300


def test_equal_launches_are_few_lines_which_say_when_each_ran(play: Play) -> None:
    trace = play("turns").trace

    of_a, late, of_b = trace.kernels
    assert [kernel.name for kernel in trace.kernels] == ["a(float*)", "a(float*)", "b(float*)"]
    assert of_a.times.tolist() == [[1, 31], [101, 131], [201, 231], [301, 331], [401, 431]]
    assert of_b.times.tolist() == [[21, 51], [121, 151], [221, 251], [321, 351], [421, 451]]
    assert late.times.tolist() == [[51, 61]] and len(trace.memsets) == 1
    assert trace.gpu_ns == 5 * 50 + 10


def test_a_kernel_that_cupti_could_not_time_counts_as_dropped(play: Play) -> None:
    trace = play("untimed_kernel").trace

    assert (trace.kernels, trace.dropped, trace.ends, trace.complete) == ((), 1, 1, False)


def test_failing_calls_are_reported_once_and_answers_of_queries_are_not_failures(play: Play) -> None:
    trace = play("errors").trace

    assert trace.api_errors == (
        ApiError("cudaMalloc", 2, "cudaErrorMemoryAllocation"),
        ApiError("cuLaunchKernel", 700, trace.api_errors[1].name),  # the driver has the name; there may be none
        ApiError("cudaLaunchKernel", 9, "cudaErrorInvalidConfiguration"),
    )


def test_a_call_that_fails_for_ever_does_not_fill_the_disk(play: Play) -> None:
    trace = play("endless_errors").trace

    assert (len(trace.api_errors), trace.complete) == (1000, True)


def test_resetting_the_device_loses_no_kernel(play: Play) -> None:
    assert len(play("reset").trace.kernels) == 1


def test_a_forked_child_adds_nothing_to_the_trace(play: Play) -> None:
    played = play("fork")

    assert played.exit_code == 0
    assert [kernel.name for kernel in played.trace.kernels] == ["in_parent"]
    assert (played.trace.starts, played.trace.ends, played.trace.api_errors) == (1, 1, ())


def test_a_program_that_is_killed_leaves_an_incomplete_trace_with_its_errors(play: Play) -> None:
    played = play("killed")

    assert played.exit_code < 0
    assert not played.trace.complete
    assert played.trace.api_errors == (ApiError("cudaMalloc", 2, "cudaErrorMemoryAllocation"),)


@pytest.mark.parametrize("part", ["no_context", "quick_exit"])
def test_a_trace_is_complete_however_early_the_program_ends(play: Play, part: str) -> None:
    assert play(part).trace.complete


def test_what_cupti_refuses_is_said_and_leaves_the_trace_incomplete(play: Play) -> None:
    trace = play("everything", FAKE_CUPTI_REFUSES="1").trace

    assert trace.tracer_errors == (TracerError("cuptiActivityEnable(memset)", "CUPTI_ERROR_NOT_COMPATIBLE"),)
    assert (len(trace.kernels), trace.ends, trace.complete) == (1, 1, False)


@pytest.mark.parametrize("path", ["", "/no/such/folder/trace.jsonl"])
def test_a_program_runs_as_ever_when_its_trace_cannot_be_written(play: Play, path: str) -> None:
    # The fake CUPTI has no callback to call then, so the program stops at "no context".
    played = play("no_context", **{PATH_VARIABLE: path})

    assert (played.exit_code, played.output) == (0, b"")
    assert not played.trace.complete


def test_a_tracer_that_cannot_be_built_is_the_graders_fault_with_the_compilers_words(tmp_path: Path) -> None:
    with pytest.raises(GraderFault, match=r"(?s)could not build the CUPTI tracer.*cupti\.h: No such file"):
        build_tracer(
            tmp_path / "tracer.so",
            cupti_include=tmp_path,
            cuda_include=tmp_path,
            cupti_library=tmp_path / "libcupti.so",
            cxx="g++",
            run=lambda command, folder: Completed(1, "fatal error: cupti.h: No such file or directory"),
        )
    assert list(tmp_path.iterdir()) == []
