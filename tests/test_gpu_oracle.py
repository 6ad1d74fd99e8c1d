"""The GPU's oracle with a driver and a compiler that are fakes: what goes to the kernel and what becomes of it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.base.errors import GraderFault, MachineFault
from grader.course import catalogue
from grader.course.assignment import Assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case, Suite, load_suite
from grader.programs import gpu_oracle
from grader.programs.gpu_oracle import CudaOracle
from tests.support.timed_engine import GPU, TimedC, tool

NVCC = 'echo "$all" > "$out"'


@dataclass
class Driver:
    """As much of pycuda.driver as is used; its kernel is numpy's oracle."""

    case: Case
    breaks: bool = False
    launches: list[tuple[int, ...]] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    freed: int = 0

    class Error(Exception):
        pass

    @property
    def function_attribute(self) -> Any:
        return type("Attributes", (), {"MAX_DYNAMIC_SHARED_SIZE_BYTES": 8})

    def mem_alloc(self, size: int) -> Memory:
        return Memory(self, np.zeros(size, np.uint8))

    def memcpy_htod(self, target: Memory, source: np.ndarray) -> None:
        target.content[: source.size] = source

    def memcpy_dtoh(self, target: np.ndarray, source: Memory) -> None:
        target[:] = source.content[: target.size]

    def module_from_file(self, path: str) -> Driver:
        self.loaded.append(Path(path).read_text())
        return self

    def get_function(self, name: str) -> Driver:
        assert name == "attention"
        return self

    def set_attribute(self, attribute: int, value: int) -> None:
        assert (attribute, value > 0) == (8, True)

    def __call__(
        self,
        source: Memory,
        target: Memory,
        *arguments: Memory | np.generic,
        block: Sequence[int],
        grid: Sequence[int],
        shared: int,
    ) -> None:
        if self.breaks:
            raise self.Error("cuLaunchKernel failed: an illegal memory access was encountered")
        self.launches.append(tuple(grid))
        operator, shape = self.case.operator, self.case.shape
        size_in, size_out = operator.unit_input_bytes(shape), operator.unit_output_bytes(shape)
        for unit in range(grid[0] // (128 // 32)):
            values = source.content[unit * size_in : (unit + 1) * size_in].view("<f4")
            (result,) = operator.oracle(shape, operator.split_unit(shape, values))
            target.content[unit * size_out : (unit + 1) * size_out] = result.astype("<f4").ravel().view(np.uint8)


@dataclass
class Memory:
    driver: Driver
    content: np.ndarray

    def free(self) -> None:
        self.driver.freed += 1


@pytest.fixture
def suite(hw4: Assignment) -> Suite:
    return load_suite(hw4.testcases_file)


def an_oracle(driver: Driver, folder: Path, nvcc: str = NVCC) -> CudaOracle:
    engine = TimedC(folder / "toolkit")
    tool(engine.toolkit.root, "nvcc", nvcc)
    return CudaOracle(driver, GPU, engine.toolkit)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("group_bytes", [1, 3 * 128 * 32 * 4, 1 << 20])
def test_files_are_numpys_whatever_fits_into_one_launch(
    suite: Suite, tmp_path: Path, group_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = suite.cases["s01"]
    units = case.operator.units(case.shape)
    monkeypatch.setattr(gpu_oracle, "GROUP_BYTES", group_bytes)
    driver = Driver(case)
    made = {}
    for name, oracle in (("gpu", an_oracle(driver, tmp_path)), ("numpy", None)):
        files = TestcaseFiles(tmp_path / name)
        catalogue.generate(case, files, suite.seed(case), oracle=oracle)
        assert catalogue.state(case, files, suite.seed(case)) == "ready"
        made[name] = files
    assert made["gpu"].input(case).read_bytes() == made["numpy"].input(case).read_bytes()
    assert made["gpu"].expected(case).read_bytes() == made["numpy"].expected(case).read_bytes()
    sidecar = catalogue.read_sidecar(case, made["gpu"])
    assert sidecar is not None and sidecar["oracle"] == "CUDA float64 on A GPU"
    assert len(driver.launches) == (1 if group_bytes == 1 << 20 else units)
    assert driver.freed == 3


def test_the_kernel_is_compiled_for_this_gpu_once(suite: Suite, tmp_path: Path) -> None:
    driver = Driver(suite.cases["s01"])
    for _ in range(2):
        oracle = an_oracle(driver, tmp_path)
        catalogue.generate(driver.case, TestcaseFiles(tmp_path), suite.seed(driver.case), oracle=oracle)
    assert len(list((tmp_path / "cache" / "native").glob("*.cubin"))) == 1
    for option in ("-cubin", "-O3", "-arch=sm_90a", "-DD=32", "gpu_oracle.cu"):
        assert option in driver.loaded[0]


def test_an_oracle_that_does_not_compile_is_the_graders_fault(suite: Suite, tmp_path: Path) -> None:
    case = suite.cases["s01"]
    oracle = an_oracle(Driver(case), tmp_path, 'echo "gpu_oracle.cu(7): error: expected a ;"; exit 2')
    with pytest.raises(GraderFault, match=r"the oracle does not compile: .*expected a ;"):
        catalogue.generate(case, TestcaseFiles(tmp_path), suite.seed(case), oracle=oracle)
    assert catalogue.state(case, TestcaseFiles(tmp_path)) == "missing"


def test_a_gpu_that_fails_is_the_machines_fault_and_numpy_is_advised(suite: Suite, tmp_path: Path) -> None:
    case = suite.cases["s01"]
    with pytest.raises(MachineFault, match=r"of s01: cuLaunchKernel failed: .*--oracle numpy"):
        catalogue.generate(
            case, TestcaseFiles(tmp_path), suite.seed(case), oracle=an_oracle(Driver(case, breaks=True), tmp_path)
        )


def test_without_pycuda_it_is_said_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda.driver", None)
    assert gpu_oracle.unavailable() == "pycuda is not installed (pip install 'cuda-homework-grader[gpu]')"


def test_without_a_gpu_there_is_no_oracle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycuda", object())
    monkeypatch.setitem(sys.modules, "pycuda.driver", object())
    monkeypatch.setattr(gpu_oracle, "find_gpu", lambda: None)
    assert gpu_oracle.unavailable() == "no NVIDIA GPU was found"
