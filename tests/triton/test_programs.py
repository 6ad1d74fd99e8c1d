"""Whole Triton programs on the emulator: after Triton's tutorials, and the course's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grader.commands import submissions
from tests.support.command_line import grader, grader_process
from tests.support.course import ROOT

CONFORMANCE = sorted((Path(__file__).parent / "conformance").glob("*.py"))
MODELS = [(path, path.parent.name) for path in sorted(ROOT.glob("reference/*/*.py"))]
MODELS += [(path, "half_backward") for path, name in MODELS if name == "half"]  # it computes gradients, too
WRONGS = sorted(ROOT.glob("reference/*/wrong/*.py"))


@pytest.mark.parametrize("path", CONFORMANCE, ids=lambda path: path.stem)
def test_a_program_gives_right_results(path: Path) -> None:
    said = grader_process("run", path, "--assignment", "softmax", "--engine", "emulator")
    assert said.code == 0 and "right" in said.out, said.err


@pytest.mark.parametrize(
    ("decorator", "argument", "says"),
    [("", "x", "needs @triton.jit"), ("@triton.jit\n", "np.ones(4)", "copy values there with from_numpy")],
    ids=["no decorator", "an array of numpy"],
)
def test_an_error_comes_with_what_is_missing(decorator: str, argument: str, says: str, tmp_path: Path) -> None:
    heading = "import numpy as np\nimport triton\nimport triton.language as tl\nfrom device_arrays import zeros\n"
    kernel = f"{decorator}def kernel(x_ptr):\n    tl.store(x_ptr, 1.0)\n"
    (tmp_path / "softmax.py").write_text(f"{heading}{kernel}x = zeros((4,))\nkernel[(1,)]({argument})\n")
    [record] = submissions.grade_paths([tmp_path], assignment="softmax", tests="s02", engine="emulator", json=None)
    assert says in record.tests[0].output


def test_a_kernel_that_ptxas_refuses_is_reported_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(
        "import triton\nimport triton.language as tl\nfrom device_arrays import zeros\n"
        "@triton.jit\ndef kernel(x_ptr):\n"
        "    x = tl.load(x_ptr, cache_modifier='.cg', eviction_policy='evict_first')\n"
        "    tl.store(x_ptr, x + 1.0)\n"
        "kernel[(1,)](zeros((4,)))\n"
    )
    [record] = submissions.grade_paths([tmp_path], assignment="softmax", tests="s02", engine="emulator", json=None)
    assert "softmax.py:6: error: ptxas refuses an instruction of this line: Modifier '.evict" in record.tests[0].output


def test_a_file_in_the_encoding_that_it_names_is_read_in_it(tmp_path: Path) -> None:
    text = (
        "# -*- coding: latin-1 -*-\nimport triton\nimport triton.language as tl\nfrom device_arrays import zeros\n"
        "@triton.jit\ndef kernel(x_ptr):\n"
        "    # r\u00e9sultat\n"
        "    tl.store(x_ptr, missing)\n"
        "kernel[(1,)](zeros((4,)))\n"
    )
    (tmp_path / "softmax.py").write_text(text, encoding="latin-1")
    [record] = submissions.grade_paths([tmp_path], assignment="softmax", tests="s02", engine="emulator", json=None)
    assert "softmax.py:8: error: NameError('missing is not defined')" in record.tests[0].output


def graded(path: Path, name: str, tmp_path: Path) -> list[dict[str, str]]:
    record = tmp_path / "record.json"
    tests = "s03..s07" if name.startswith("half") else "s02,s04,s06,s08"  # half: each mask and layout
    said = grader("grade", path, "--assignment", name, "--engine", "emulator", "--tests", tests, "--json", record)
    assert said.code == 0, said.err
    tests: list[dict[str, str]] = json.loads(record.read_text())["tests"]
    return tests


@pytest.mark.parametrize(("path", "name"), MODELS, ids=lambda value: value if isinstance(value, str) else value.stem)
def test_a_model_solution_passes(path: Path, name: str, tmp_path: Path) -> None:
    assert {test["verdict"] for test in graded(path, name, tmp_path)} == {"passed"}


@pytest.mark.parametrize("path", WRONGS, ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_wrong_solution_is_refused_with_its_cause(path: Path, tmp_path: Path) -> None:
    verdict, _, says = path.read_text().splitlines()[1].removeprefix("# expect: ").partition(" on most: ")
    failed = [test for test in graded(path, path.parts[-3], tmp_path) if test["verdict"] != "passed"]
    assert {test["verdict"] for test in failed} == {verdict}
    assert 2 * sum(says in test["reason"] for test in failed) > len(failed), [test["reason"] for test in failed]


@pytest.mark.parametrize("name", ["softmax", "matmul", "half", "half_backward"])
def test_the_template_runs_and_fails_every_test_politely(name: str, tmp_path: Path) -> None:
    tests = graded(ROOT / "student_template" / name / f"{name}.py", name, tmp_path)
    assert {test["verdict"] for test in tests} == {"wrong_answer"}
    assert all("exactly 0" in test["reason"] for test in tests)
