"""The pipeline on a real GPU: the same programs as on the emulator, and the times only a GPU gives."""

from pathlib import Path

import numpy as np
import pytest

from grader.programs.engine.cuda import CudaEngine
from tests.support.command_line import graded, grader
from tests.support.course import PROGRAMS, QUICK, ROOT

ON_GPU = ("--engine", "cuda")


@pytest.mark.parametrize("name", ["naive", "tiled", "flash2"])
def test_the_model_solutions_pass_and_are_timed(name: str, tmp_path: Path, gpu: CudaEngine) -> None:
    record = graded(ROOT / f"reference/hw4/{name}.cu", tmp_path, "public,t01", *ON_GPU)
    assert record["engine"]["device"] == gpu.device
    assert record["engine"]["facts"]["driver"] == gpu.gpu.driver
    for test in record["tests"]:
        assert test["verdict"] == "passed", test["reason"]
        assert 0 < test["gpu_ms"] < test["wall_s"] * 1e3
        assert test["kernels"] > 0
        assert test["speedup"] == pytest.approx(test["baseline"]["seconds"] * 1e3 / test["gpu_ms"])


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        ("wrong_scale", "wrong_answer", "the scale is missing"),
        ("last_tile_dropped", "wrong_answer", "(32 of 128): 96–127"),
        ("silent", "no_output", "no output file"),
        ("crash", "runtime_error", "SIGSEGV"),
        ("device_fault", "runtime_error", "cudaErrorIllegalAddress"),
        ("syntax_error", "compile_error", "syntax_error.cu("),
        ("uses_cublas", "compile_error", "calls cublasCreate from cuBLAS"),
        ("unusual_but_right", "passed", ""),
        ("exit_nonzero_but_right", "passed", ""),
    ],
)
def test_verdicts_are_those_of_the_emulator(
    program: str, verdict: str, reason: str, tmp_path: Path, gpu: CudaEngine
) -> None:
    for test in graded(PROGRAMS / f"{program}.cu", tmp_path, QUICK, *ON_GPU)["tests"]:
        assert test["verdict"] == verdict, test["reason"]
        assert reason in test["reason"]


def test_a_kernel_that_never_ends_is_stopped(tmp_path: Path, timed: CudaEngine) -> None:
    (test,) = graded(PROGRAMS / "kernel_hang.cu", tmp_path, "s01", *ON_GPU)["tests"]
    assert test["verdict"] == "time_limit", test["reason"]
    assert "the assignment's limit of 10 s" in test["reason"]


@pytest.mark.parametrize("name", ["naive", "tiled", "flash2"])
def test_emulator_and_gpu_agree_within_1e_5(name: str, tmp_path: Path, gpu: CudaEngine) -> None:
    assert grader("testcases", "generate", "public").code == 0
    for sample in (f"s{number:02}" for number in range(1, 9)):
        outputs = []
        for engine in ("cuda", "emulator"):
            output = tmp_path / f"{sample}.{engine}"
            source = ROOT / f"reference/hw4/{name}.cu"
            said = grader("run", source, ROOT / f"testcases/hw4/{sample}.in", output, "--engine", engine)
            assert said.code == 0, said.err
            outputs.append(np.fromfile(output, dtype="<f4"))
        assert np.abs(outputs[0] - outputs[1]).max() <= 1e-5, sample


def test_doctor_finds_everything(gpu: CudaEngine) -> None:
    said = grader("doctor")
    assert said.code == 0
    lines = {line[9:].split("  ")[0]: line for line in said.out.splitlines()}
    for what in ("GPU", "CUDA programs", "CUPTI", "GPU tracer"):
        assert lines[what].startswith("ok"), lines[what]
