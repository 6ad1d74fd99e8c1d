"""The whole way from a .cu file to a record, as a user goes it: command line, nvcc, emulator, real programs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from grader.grading.closer_look import CloserLook
from tests.support.command_line import graded, grader
from tests.support.course import PROGRAMS, QUICK, ROOT, course_with_emulator_limit


def test_a_model_solution_passes_the_samples_and_without_a_gpu_no_times_are_measured(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    words = ("--arch", "sm_80", "--engine", "emulator", "--tests", QUICK, "--json", path)
    said = grader("grade", ROOT / "reference/hw4/tiled.cu", *words)
    record = json.loads(path.read_text())
    assert [test["verdict"] for test in record["tests"]] == ["passed"] * 2
    assert all(test["max_error"] < 1e-4 for test in record["tests"])
    assert all(test["kernels"] > 0 for test in record["tests"])
    assert record["scores"]["correctness"] == 60
    assert said.code == 0
    assert "not measured" in said.out
    assert "Practice score: 60 of 60 points for the tests that ran." in said.out
    assert record["engine"]["name"] == "emulator"
    assert all(test["gpu_ms"] is None and test["speedup"] is None for test in record["tests"])
    assert record["occupancy"] is None
    assert record["practice"] is True
    scores = record["scores"]
    assert (scores["speedup"], scores["occupancy"], scores["total"], scores["max"]) == (None, None, None, 100)


@pytest.mark.parametrize(
    ("program", "verdict", "reason"),
    [
        ("crash", "runtime_error", "segmentation fault"),
        ("device_fault", "runtime_error", "device_fault.cu:2: kernel"),
        ("syntax_error", "compile_error", "syntax_error.cu("),
        ("uses_cublas", "compile_error", "calls cublasCreate from cuBLAS, which this assignment forbids"),
    ],
)
def test_what_goes_wrong_is_named_and_is_the_students(
    program: str, verdict: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CloserLook, "possible", False)  # another build: test_closer_look.py
    record = graded(PROGRAMS / f"{program}.cu", tmp_path, "s01")
    assert {test["verdict"] for test in record["tests"]} == {verdict}
    assert {test["fault"] for test in record["tests"]} == {"student"}
    for test in record["tests"]:
        assert reason in test["reason"]
    if program == "device_fault":  # what follows from a fault is not said
        assert test["reason"].startswith(reason)
        assert "cudaError" not in test["reason"] and "no output file" not in test["reason"]
    assert record["scores"]["correctness"] == 0


def test_failing_on_a_damaged_testcase_is_the_machines_fault(tmp_path: Path) -> None:
    path, course = tmp_path / "record.json", course_with_emulator_limit(tmp_path / "course", 60)
    root = str(course)
    assert grader("testcases", "generate", "s02", GRADER_ROOT=root).code == 0
    with (course / "testcases/hw4/s02.in").open("r+b") as file:  # the header stays, values change
        file.seek(4096)
        file.write(bytes(8192))
    words = ("grade", ROOT / "reference/hw4/naive.cu", "--engine", "emulator", "--tests", "s02", "--json", path)
    assert grader(*words, GRADER_ROOT=root).code == 1
    record = json.loads(path.read_text())
    (test,) = record["tests"]
    assert (test["verdict"], test["fault"]) == ("grader_error", "machine")
    assert "s02.in was changed: its SHA-256 is" in test["reason"]
    assert record["scores"]["correctness"] is None


def test_only_the_output_decides(tmp_path: Path) -> None:
    for test in graded(PROGRAMS / "exit_nonzero_but_right.cu", tmp_path, "s01")["tests"]:
        assert (test["verdict"], test["reason"]) == ("passed", "")
        assert "ended with exit code" in test["warnings"][0]


def test_check_exits_1_when_a_test_fails_and_0_when_all_pass() -> None:
    failing = grader("check", PROGRAMS / "wrong_scale.cu", "--engine", "emulator", "--tests", QUICK)
    assert failing.code == 1
    assert "0 of 2 tests passed" in failing.out
    said = " ".join(" ".join(failing.out.splitlines()[:5]).split())
    assert "(the scale is missing). Look at attention.cuh:57:" in said
    passing = grader("check", ROOT / "reference/hw4/tiled.cu", "--engine", "emulator", "--tests", QUICK)
    assert (passing.code, "All 2 tests passed" in passing.out) == (0, True)
    broken = grader("check", PROGRAMS / "syntax_error.cu", "--engine", "emulator", "--tests", QUICK)
    assert broken.code == 1
    assert "does not compile" in broken.out


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["grade", "nowhere.cu"], 2, "nowhere.cu does not exist"),
        (["check", "empty.cu"], 2, "empty.cu is empty"),
        (["grade", "folder"], 2, "holds no .cu file"),
        (["grade", "ok.cu", "--tests", "t99"], 2, "no testcase 't99'"),
        (["grade", "ok.cu", "--assignment", "hw9"], 2, "Unknown assignment 'hw9'"),
        (["grade", "ok.cu", "--engine", "tpu"], 2, "Unknown engine 'tpu'"),
        (["grade", "ok.cu", "--engine", "cuda"], 2, "--engine cuda needs an NVIDIA GPU"),
        (["grade", "--nonsense"], 2, "--nonsense"),
        (["frobnicate"], 2, "frobnicate"),
        (["testcases", "generate", "t05..t01"], 2, "runs backwards"),
    ],
)
def test_bad_words_get_one_sentence_and_exit_code_2(tmp_path: Path, words: list[str], code: int, says: str) -> None:
    (tmp_path / "empty.cu").write_text("")
    (tmp_path / "ok.cu").write_text("int main() {}\n")
    (tmp_path / "folder").mkdir()
    said = grader(*words, cwd=tmp_path, CUDA_VISIBLE_DEVICES="", PYTHONPATH=str(ROOT))
    assert said.code == code
    assert says in said.err


def test_without_a_compiler_the_sentence_says_how_to_get_one(tmp_path: Path) -> None:
    """A machine without nvcc: an empty PATH, and a Python that finds no toolkit anywhere."""
    script = (
        "import cudaemu.toolkit as t, pathlib, sys\n"
        "t.pypi_roots = lambda: ()\n"
        "real = pathlib.Path.is_file\n"
        "pathlib.Path.is_file = lambda self: False if self.name == 'nvcc' else real(self)\n"
        "from grader.commands.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", script, "check", str(ROOT / "reference/hw4/naive.cu")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No CUDA compiler" in done.stderr
    assert "make setup" in done.stderr
    assert "Traceback" not in done.stderr
