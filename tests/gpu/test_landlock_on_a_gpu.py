"""A GPU in a place where bubblewrap cannot run: an unprivileged container, or a cluster without user namespaces."""

from pathlib import Path

import pytest

from grader import sandbox
from grader.commands import submissions
from grader.commands.choice import Choice
from grader.course.assignment import Limits
from grader.profiling.ncu import NotProfiled, run_ncu
from grader.programs.engine.cuda import CudaEngine
from grader.sandbox import bubblewrap
from grader.sanitizers import run_check
from tests.honest.__main__ import complaints
from tests.support.course import ROOT

METRIC = "sm__cycles_elapsed.max"
LIMITS = Limits(wall_s=())
KERNEL = """
#include <cstdio>
__global__ void fill(float* out) { out[threadIdx.x] = threadIdx.x; }
int main() {
    float* out;
    cudaMalloc(&out, 1024);
    fill<<<1, 256>>>(out);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@pytest.fixture(autouse=True)
def _without_bubblewrap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "problem", lambda: "left out for this test")


@pytest.fixture
def kernel(gpu: CudaEngine, tmp_path: Path) -> Path:
    (tmp_path / "fill.cu").write_text(KERNEL)
    run = sandbox.linker(60, readable=gpu.build_paths, writable=(tmp_path,))
    built = gpu.compile(["fill.cu"], [], folder=tmp_path, output=tmp_path / "fill", run=run)
    assert built.ok, built.log
    return tmp_path / "fill"


def test_cuda_starts_and_a_submission_passes_and_is_timed(gpu: CudaEngine) -> None:
    assert gpu.problem() == ""
    solution = ROOT / "reference/hw4/tiled.cu"
    [record] = submissions.grade_paths([solution], Choice("hw4", "s01,s02", "cuda"))
    assert complaints(record) == []
    assert record.machine.confinement.startswith("Landlock")
    assert all(test.gpu_ms is not None for test in record.tests)


def test_nvidias_tools_see_the_kernel_or_say_why_not(gpu: CudaEngine, kernel: Path) -> None:
    report = run_check(gpu, kernel, [], "memory", readable=(), kernels=1)
    profiled = ""
    try:
        launches, _ = run_ncu(gpu, kernel, kernel, metrics=[METRIC], invocations=None, output_bytes=1024, limits=LIMITS)
        profiled = launches[0].kernel
    except NotProfiled as why:
        assert sandbox.tool_problem()
        assert sandbox.tool_problem() in str(why)
    refused = sandbox.tool_problem() != ""
    assert (report.not_run != "", "fill" not in profiled) == (refused, refused)
