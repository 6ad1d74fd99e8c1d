"""What the process of a Python program does for a GPU, on a machine without one: Triton compiles for it, and a stand-in
takes the place of CUDA's driver."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.grading.moved_values import Computed, compare
from grader.grading.other_input import write_other_values
from grader.grading.run_record import Entry, read_record
from grader.programs.engine.python_program import START
from grader.programs.run import open_recording
from grader.python import gpu, layout
from grader.python.value_sources import Source
from tests.support.course import ROOT

CASE = load_suite(load_assignment("softmax").testcases_file).cases["s03"]
HONEST = (
    "assertions",
    "autotuned",
    "device_print",
    "numbers_from_the_device",
    "table_of_pointers",
    "times_itself",
)
ATTACKS = ("constants_of_a_kernel", "quiet_numbers", "results_as_arguments")

KERNEL = """
import triton
import triton.language as tl

@triton.jit
def kernel(y_ptr, x):
    tl.device_assert(x > 0)
    tl.store(y_ptr, x * {factor})
"""


def code_in_a_run(folder: Path, factor: float, written_s: int, monkeypatch: pytest.MonkeyPatch) -> str:
    triton, compiler = pytest.importorskip("triton"), pytest.importorskip("triton.backends.compiler")
    folder.mkdir()
    source = folder / "softmax.py"
    source.write_text(KERNEL.format(factor=factor))
    os.utime(source, (written_s, written_s))
    spec = importlib.util.spec_from_file_location("submission", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
    described = triton.compiler.ASTSource(module.kernel, {"y_ptr": "*fp32", "x": "fp32"})
    options = {"debug": True}
    built = triton.compile(described, target=compiler.GPUTarget("cuda", 90, 32), options=options)
    assert os.fsencode(folder) in built.asm["cubin"]
    return gpu.code_hash(built.asm["cubin"], os.fsencode(folder))


def test_the_code_of_a_kernel_is_known_again_in_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, other = (
        code_in_a_run(tmp_path / name, factor, written_s, monkeypatch)
        for name, factor, written_s in (
            ("run-aaaa", 2.0, 1_000_000_000),
            ("run-zzzz", 2.0, 1_700_000_000),
            ("run-cccc", 3.0, 0),
        )
    )
    assert first == second
    assert other != first


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the stand-in for CUDA's driver."""
    folder = tmp_path_factory.mktemp("driver")
    source = Path(__file__).with_name("stand_in_driver.c")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True)
    return folder


def recorded(package: Path, input_file: Path, driver: Path, times_ms: Sequence[float] = ()) -> list[Entry]:
    with open_recording("7", times_ms) as recording:
        environment = {"GRADER_PYTHON_ENGINE": "cuda", "LD_LIBRARY_PATH": str(driver), "PYTHONHASHSEED": "0"}
        done = subprocess.run(
            [sys.executable, "-sPBc", START.format(str(ROOT)), package, input_file, package.with_name("output")],
            env={"PATH": os.environ["PATH"], "GRADER_TRACE": os.devnull, **environment, **recording.environment},
            pass_fds=[recording.file.fileno()],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        record = read_record(recording.file)
    assert record is not None and any(entry.kind == "written" for entry in record)
    return record


def compared(source: str, folder: Path, driver: Path) -> Computed | None:
    """What two runs, whose kernels are all compiled in the run, leave unexplained."""
    package, inputs = folder / "program.pyz", (folder / "input", folder / "other")
    inputs[0].write_bytes(
        np.array([100, 31], np.int32).tobytes()
        + np.random.default_rng(1).uniform(80, 100, 3100).astype(np.float32).tobytes()
    )
    write_other_values(CASE, *inputs)
    with zipfile.ZipFile(package, "w") as packed:
        packed.writestr(f"{layout.SOURCE}/softmax.py", source)
        packed.writestr(layout.MAIN, "softmax.py")
    one = recorded(package, inputs[0], driver)
    times_ms = [float(str(number)) for entry in one if entry.kind == "times" for number in entry.numbers]
    other = recorded(package, inputs[1], driver, times_ms)
    assert [entry.form for entry in one] == [entry.form for entry in other]
    sources = [Source(np.frombuffer(path.read_bytes(), np.uint8), "fp32") for path in inputs]
    return compare([one, other], sources).computed


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_program_does_the_same_on_other_values(name: str, tmp_path: Path, driver: Path) -> None:
    source = (ROOT / f"tests/honest/python/softmax/{name}.py").read_text()
    assert compared(source, tmp_path, driver) is None


@pytest.mark.parametrize("name", ATTACKS)
def test_values_in_launches_are_seen(name: str, tmp_path: Path, driver: Path) -> None:
    folder = ROOT / "tests/redteam/python"
    found = compared((folder / "prelude.py").read_text() + (folder / f"{name}.py").read_text(), tmp_path, driver)
    assert found is not None and found.kind == "arguments"
