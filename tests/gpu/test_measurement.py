"""Measuring on a real GPU: repeated timing runs, floors, profiles, sanitizers, the GPU's oracle."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.course import catalogue
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import load_suite
from grader.gpu.facts import gpu_facts, known_limits
from grader.gpu.idle import use_reader, wait_until_idle
from grader.gpu.state import nvml_reader, watching
from grader.programs import gpu_oracle
from grader.programs.engine.cuda import CudaEngine
from tests.support.command_line import graded, grader
from tests.support.course import ROOT

SANITIZE = ROOT / "tests" / "programs" / "hw4"
ON_GPU = ("--engine", "cuda")


def test_the_occupancy_of_the_graded_test_is_profiled_and_scored(tmp_path: Path, timed: CudaEngine) -> None:
    record = graded(ROOT / "reference/hw4/flash2.cu", tmp_path, "t23", *ON_GPU)
    (profile,) = record["profiles"]
    (kernel,) = profile["kernels"]
    assert profile["achieved"] == record["occupancy"]
    assert 0 < record["occupancy"] <= kernel["theoretical"] <= 1
    (part,) = [part for part in record["parts"] if part["part"] == "occupancy"]
    assert part["points"] is not None


def test_the_tiled_kernels_profile_has_the_published_occupancy(tmp_path: Path, timed: CudaEngine) -> None:
    path = tmp_path / "profile.json"
    said = grader("profile", ROOT / "reference/hw4/tiled.cu", "--test", "t23", "--json", path, "--launches", "12")
    assert said.code == 0, said.err
    profile = json.loads(path.read_text())
    (kernel,) = profile["kernels"]
    assert kernel["profiled"] == 12
    assert kernel["launches"] == 12_800
    if timed.gpu.name == "NVIDIA H200":
        assert 0.49 <= kernel["metrics"]["achieved_occupancy"]["avg"] <= 0.50
    assert "12,800 launches, 12 profiled" in said.out


def test_a_kernel_of_any_name_is_profiled(tmp_path: Path, timed: CudaEngine) -> None:
    path = tmp_path / "profile.json"
    said = grader("profile", ROOT / "tests/honest/programs/kernel_names.cu", "--test", "t23", "--json", path)
    assert said.code == 0, said.err
    profiled = {kernel["name"]: kernel["profiled"] for kernel in json.loads(path.read_text())["kernels"]}
    assert any("(anonymous namespace)" in name for name in profiled)
    assert min(profiled.values()) > 0, profiled


def counted_of(timing: dict[str, Any]) -> list[float]:
    """The times of the runs that count."""
    counted = [run for run in timing["runs"] if run["use"] == "counted"]
    assert len(counted) >= 3
    assert all(run["sm_mhz"] > 0 and run["memory_mhz"] > 0 and run["temperature_c"] > 0 for run in counted)
    return [run["gpu_ms"] for run in counted]


def test_a_timed_test_and_the_reference_solution_are_repeated_until_the_rule_is_satisfied(
    tmp_path: Path, timed: CudaEngine
) -> None:
    """hw4 with a rubric of one part more: the ratio to flash2.cu, which is also what is handed in."""
    course = tmp_path / "course"
    shutil.copytree(ROOT / "assignment/hw4", course / "assignment/hw4")
    for folder in ("reference", "testcases"):
        (course / folder).symlink_to(ROOT / folder)
    rules = course / "assignment/hw4/assignment.yaml"
    part = "  - {part: speed, kind: reference_ratio, points: 20, tests: t25, reference: flash2.cu}\n"
    rules.write_text(rules.read_text().replace("\nmetrics:", f"{part}\nmetrics:", 1))
    path = tmp_path / "record.json"
    said = grader(
        "grade", ROOT / "reference/hw4/flash2.cu", *ON_GPU, "--tests", "t25", "--json", path, GRADER_ROOT=str(course)
    )
    assert said.code == 0, said.err
    record = json.loads(path.read_text())
    assert record["machine"]["gpu_prepared"].startswith("idle")
    assert not any("GPU was not idle" in note for note in record["notes"])
    (test,) = record["tests"]
    timing, reference = test["timing"], test["reference"]
    assert test["gpu_ms"] == timing["median_ms"] == pytest.approx(np.median(counted_of(timing)))
    assert timing["stopped"] in ("agreed", "stable")
    assert timing["low_ms"] <= timing["median_ms"] <= timing["high_ms"]
    assert test["timing_refused"] == ""
    assert 0 < test["floor"]["share"] < 1
    assert test["floor"]["ms"] == max(term["ms"] for term in test["floor"]["terms"])
    assert (reference["name"], reference["sha256"]) == ("flash2.cu", record["submission"]["sha256"])
    assert test["reference_ms"] == reference["timing"]["median_ms"]
    assert counted_of(reference["timing"])
    assert test["gpu_ms"] / test["reference_ms"] == pytest.approx(1, abs=0.01)
    (speed,) = [part for part in record["parts"] if part["part"] == "speed"]
    assert speed["points"] == 20
    explained = grader("explain", path)
    assert "of the reference solution, timed in the same grading" in explained.out
    assert "DOES NOT FOLLOW" not in explained.out


# ---- the GPU between submissions --------------------------------------------------------------------------------

MARK = 0x5EC2E75E
"""What one program leaves in the GPU's memory for another to find."""


@pytest.fixture
def fresh_memory(compiled: Callable[..., Path]) -> Path:
    return compiled(ROOT / "tests/programs/measure/fresh_memory.cu")


def found_in(fresh_memory: Path, word: str) -> dict[str, float]:
    """Bytes that a new program can get, and the shares of zeros, NaN and MARK it finds there (`look`), or leaves
    MARK everywhere (`mark`)."""
    done = subprocess.run([fresh_memory, word, hex(MARK)], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def test_a_gpu_is_idle_only_while_nobody_computes_on_it(fresh_memory: Path, alone: CudaEngine) -> None:
    with use_reader(alone.gpu.uuid) as used:
        assert used is not None
        assert wait_until_idle(used, print).idle is True
        with subprocess.Popen([fresh_memory, "busy", hex(MARK)]) as other:
            seen = []
            while other.poll() is None:
                use = used()
                assert use is not None
                seen.append(use)
        assert any(use.idle is False for use in seen)
        assert wait_until_idle(used, print).idle is True


def test_a_program_finds_nothing_of_another_in_fresh_memory(fresh_memory: Path, alone: CudaEngine) -> None:
    found_in(fresh_memory, "mark")
    assert found_in(fresh_memory, "look")["mark"] == 0, "the driver does not clear memory any more"


@pytest.mark.parametrize(
    ("program", "check", "place"),
    [
        ("out_of_bounds", "memory", "out_of_bounds.cu:9"),
        ("race", "race", "race.cu:"),
        ("uninitialised", "init", "uninitialised.cu:8"),
        ("divergent_barrier", "sync", "divergent_barrier.cu:"),
    ],
)
def test_each_sanitizer_names_the_line_of_its_fault(program: str, check: str, place: str, gpu: CudaEngine) -> None:
    said = grader("check", SANITIZE / f"{program}.cu", "--engine", "cuda", "--tests", "s01", "--sanitize", check)
    assert said.code == 1, said.err
    assert f"{check}: not run" not in said.out
    assert place in said.out


def test_a_right_program_passes_all_sanitizers(gpu: CudaEngine) -> None:
    program = ROOT / "reference/hw4/flash2.cu"
    said = grader("check", program, "--engine", "cuda", "--tests", "s01", "--sanitize", "all")
    assert said.code == 0, said.out + said.err
    for check in ("memory", "race", "init", "sync"):
        assert f"{check}: nothing found." in said.out


def test_the_driver_and_the_table_agree_on_this_architecture(gpu: CudaEngine) -> None:
    facts = gpu_facts(gpu.gpu.uuid)
    assert facts is not None
    assert facts.limits.compute_capability == gpu.gpu.compute_capability
    assert known_limits(gpu.gpu.compute_capability) == facts.limits


def test_nvml_is_read_while_something_runs(gpu: CudaEngine) -> None:
    with nvml_reader(gpu.gpu.uuid) as read, watching(read, every_s=0.001) as watch:
        pass
    assert watch.state is not None
    assert 100 <= watch.state.sm_mhz <= 5000


@pytest.mark.skipif(bool(gpu_oracle.unavailable()), reason="pycuda is optional; numpy makes the same files")
@pytest.mark.parametrize(
    ("name", "cases"),
    [
        ("hw4", ("s01", "s02", "s05", "s08", "t01")),
        ("half", ("s03", "s05", "s09", "s11", "t16")),
        ("half_backward", ("s03", "s05", "s08", "s09", "t04")),
    ],
)
def test_the_gpus_oracle_is_numpys_to_the_last_bit_but_one(
    name: str, cases: tuple[str, ...], tmp_path: Path, gpu: CudaEngine
) -> None:
    suite = load_suite(load_assignment(name).testcases_file)
    with gpu_oracle.open_gpu_oracle() as oracle:
        for case in (suite.cases[each] for each in cases):
            made = []
            for folder, quick in (("numpy", None), ("gpu", oracle)):
                files = TestcaseFiles(tmp_path / folder)
                catalogue.generate(case, files, suite.seed(case), oracle=quick)
                assert catalogue.state(case, files, suite.seed(case)) == "ready"
                made.append(files)
            assert made[0].input(case).read_bytes() == made[1].input(case).read_bytes()
            one, other = (np.fromfile(files.expected(case), "<f4") for files in made)
            assert np.abs(one - other).max() <= 2.5e-7 * max(1.0, float(np.abs(one).max())), case.name
            numpys, ours = (catalogue.read_sidecar(case, files) for files in made)
            assert numpys is not None and ours is not None
            assert ours["oracle"].startswith("CUDA float64 on ")
            for tensor, errors in numpys.get("plain", {}).items():  # sums in another order may round the other way
                assert ours["plain"][tensor]["rms"] == pytest.approx(errors["rms"], rel=0.02)
            assert catalogue.verify(case, made[1], suite.seed(case), full=True).ok
