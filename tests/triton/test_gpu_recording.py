"""Recording and replaying for a GPU, on a machine without one: Triton compiles for sm_90. A stand-in takes the place of
CUDA's driver; its kernels do nothing."""

import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from grader.base.verdict import Fault
from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.plans.replay_program import replay_program
from grader.programs.build import shapes_of
from grader.programs.engine.cuda import machine_code
from grader.programs.engine.interface import Compiled, Launch, Recording
from grader.programs.engine.plan_program import record
from grader.programs.toolkit import find_toolkit

CASE = load_suite(load_assignment("softmax").testcases_file).cases["s03"]
KERNELS = """
import torch
import triton
import triton.language as tl


@triton.autotune([triton.Config({"BLOCK": size}) for size in (64, 128, 256)], key=["n"])
@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at, mask=at < n), mask=at < n)


"""


PTX = b".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry double() { ret; }\n"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in for CUDA's driver."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("stand_in_driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", folder / "libcuda.so.1", source], check=True)
    return folder


def recorded(text: str, folder: Path, driver: Path) -> Compiled:
    (folder / "source").mkdir()
    (folder / "source/softmax.py").write_text(KERNELS + text)
    (folder / "work").mkdir()
    replay = replay_program("gpu", find_toolkit().include)
    compiled = partial(machine_code, "sm_90a", find_toolkit().nvcc)
    replayer = Launch((str(replay), "gpu"), {"LD_LIBRARY_PATH": str(driver)}, (replay, driver))
    recording = Recording("cuda:90", compiled, replayer)
    return record("softmax.py", folder / "source", folder / "work", recording, shapes_of([CASE]), limit_s=60)


def replayed(package: bytes, folder: Path, driver: Path) -> bytes:
    (folder / "program.plans").write_bytes(package)
    (folder / "input").write_bytes(CASE.operator.encode_header(CASE.shape) + bytes(CASE.input_bytes - 8))
    command = [replay_program("gpu", find_toolkit().include), "gpu", *(folder / n for n in ("program.plans", "input"))]
    environment = {"LD_LIBRARY_PATH": str(driver)}
    subprocess.run([*command, folder / "output"], env=environment, check=True, capture_output=True)
    return (folder / "output").read_bytes()


def test_the_plan_has_the_configuration_that_was_fastest_and_none_of_the_trials(tmp_path: Path, driver: Path) -> None:
    solve = """
def solve(x, y, rows, columns):
    double[lambda c: (triton.cdiv(x.numel(), c['BLOCK']),)](x, y, x.numel())
"""
    made = recorded(solve, tmp_path, driver)
    assert made.ok, made.log
    assert made.log.startswith("autotune: double runs with BLOCK: ")
    assert made.log.count("BLOCK: ") == 3
    assert made.package.count(b"\nlaunch ") == 1 and made.package.count(b"\nkernel ") == 1
    output = replayed(made.package, tmp_path, driver)
    assert len(output) == CASE.output_bytes and set(output) == {0xFF}, "outputs are poisoned, not cleared"


def test_what_the_host_fills_and_copies_reaches_the_device(tmp_path: Path, driver: Path) -> None:
    solve = """
def solve(x, y, rows, columns):
    half, table = torch.full((rows, columns), 0.5), torch.tensor([1.5, 2.5])
    y.copy_(half)
    y.reshape(-1)[2:4].copy_(table)
"""
    made = recorded(solve, tmp_path, driver)
    assert made.ok, made.log
    output = np.frombuffer(replayed(made.package, tmp_path, driver), np.float32)
    assert output[:5].tolist() == [0.5, 0.5, 1.5, 2.5, 0.5] and set(output[5:]) == {0.5}


def test_a_launch_with_other_arguments_than_the_kernels_is_refused(tmp_path: Path, driver: Path) -> None:
    solve = f"""
from grader.plans import recorder
def solve(x, y, rows, columns):
    kernel = recorder.current().load("double", {PTX!r}, 0)
    recorder.current().launch(kernel.handle, (1, 1, 1), [y.data_ptr(), bytes(4)], threads=32)
"""
    made = recorded(solve, tmp_path, driver)
    assert made.ok, made.log
    with pytest.raises(subprocess.CalledProcessError) as ended:
        replayed(made.package, tmp_path, driver)
    assert b"the kernel takes 5 arguments of 8, 8, 4, 8, 8 bytes; the launch passes 2" in ended.value.stderr


def test_machine_code_is_made_by_the_graders_compiler_alone(driver: Path, tmp_path: Path) -> None:
    """Machine code of a submission could launch kernels that no trace shows."""
    own = """
def solve(x, y, rows, columns):
    from grader.plans import recorder
    number = recorder.current().load("double", b"\\x7fELF" + bytes(60), 0).handle
    recorder.current().launch(number, (1, 1, 1), [x.data_ptr()], threads=1)
"""
    made = recorded(own, tmp_path, driver)
    assert made.fault is Fault.STUDENT and "ptxas" in made.log, made.log


def test_options_of_ptxas_are_refused_at_the_launch(driver: Path, tmp_path: Path) -> None:
    solve = """
def solve(x, y, rows, columns):
    double.fn[(1,)](x, y, 1, BLOCK=64, ptx_options="--maxrregcount=32")
"""
    made = recorded(solve, tmp_path, driver)
    assert made.fault is Fault.STUDENT and "remove --maxrregcount=32" in made.log, made.log
    assert made.log.count("error:") == 1
