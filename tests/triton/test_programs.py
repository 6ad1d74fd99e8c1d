"""Whole Triton programs on the emulator: after Triton's tutorials, and the course's own."""

import json
import re
import shutil
from pathlib import Path

import pytest

from grader.commands import submissions
from grader.commands.choice import Choice
from grader.course.assignment import load_assignment
from grader.course.coherence import suite_of
from tests.support.assignments import NO_CAUSE
from tests.support.command_line import grader, grader_process
from tests.support.course import ROOT

CONFORMANCE = sorted((Path(__file__).parent / "conformance").glob("*.py"))
MODELS = [(path, path.parent.name) for path in sorted(ROOT.glob("reference/*/*.py"))]
MODELS += [(path, "half_backward") for path, name in MODELS if name == "half"]  # it computes gradients, too
WRONGS = sorted(ROOT.glob("reference/*/wrong/*.py"))


@pytest.mark.parametrize("path", CONFORMANCE, ids=lambda path: path.stem)
def test_a_program_gives_right_results(path: Path) -> None:
    said = grader_process("run", path, "--engine", "emulator")
    assert said.code == 0 and "right" in said.out, said.err


def build_log(text: str, folder: Path, encoding: str = "utf-8") -> str:
    """What the build says of a submission that does not compile."""
    (folder / "softmax.py").write_text(text, encoding=encoding)
    [record] = submissions.grade_paths([folder], Choice("softmax", "s02,s03", "emulator"))
    assert not record.build.ok and {test.verdict for test in record.tests} == {"compile_error"}
    assert str(folder) not in record.build.log
    return record.build.log


HEADING = "import numpy as np\nimport torch\nimport triton\nimport triton.language as tl\n"
KERNEL = "@triton.jit\ndef kernel(x_ptr):\n    tl.store(x_ptr, 1.0)\n"
SOLVE = "def solve(x, y, rows, columns):\n    "


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEADING + KERNEL.replace("@triton.jit\n", "") + SOLVE + "kernel[(1,)](y)\n", "needs @triton.jit"),
        (HEADING + KERNEL + SOLVE + "kernel[(1,)](np.ones(4))\n", "make one of a numpy table with torch.from_numpy"),
        (HEADING + KERNEL + "def main(x, y):\n    kernel[(1,)](y)\n", "write `def solve(x, y, rows, columns):`"),
        (HEADING + KERNEL + "x = torch.zeros(4)\n", "softmax.py:8: error: tensors are made in solve"),
        (HEADING + KERNEL + "def solve(x, out):\n    kernel[(1,)](out)\n", "write `def solve(x, y, rows, columns):`"),
        (HEADING + KERNEL + SOLVE + "if x.max() > 0:\n        pass\n", "softmax.py:9: error: tensors have no `max`"),
        (HEADING + KERNEL + SOLVE + "y.copy_(torch.exp(x))\n", "softmax.py:9: error: torch.exp is not there"),
        (HEADING + KERNEL + SOLVE + "print(x.cpu())\n", "softmax.py:9: error: cpu() would read values"),
        ("x = 1\ndef f(:\n", "softmax.py:2: error: SyntaxError: invalid syntax\n    def f(:"),
        ("x = 1\nreturn x\n", "softmax.py:2: error: SyntaxError: 'return' outside function"),
        ("x = 1\0\n", "save the file as UTF-8"),
        (SOLVE + "raise ValueError('\\udc80')\n", "softmax.py:2: error: ValueError: \\udc80"),
        ("x = " + "(" * 100_000, "softmax.py:1: error: "),
        ("import torch.nn as nn\n" + HEADING + KERNEL, "softmax.py:1: error: No module named 'torch.nn'"),
        ("from torch import nn\n" + HEADING + KERNEL, "softmax.py:1: error: cannot import name 'nn' from 'torch': "),
        (
            HEADING + KERNEL.replace("1.0", "missing") + SOLVE + "kernel[(1,)](y)\n",
            "softmax.py:7: error: NameError('missing is not defined')",
        ),
        (
            HEADING + "@triton.jit\ndef kernel(x_ptr):\n"
            "    x = tl.load(x_ptr, cache_modifier='.cg', eviction_policy='evict_first')\n"
            "    tl.store(x_ptr, x + 1.0)\n" + SOLVE + "kernel[(1,)](y)\n",
            "softmax.py:7: error: ptxas refuses an instruction of this line: Modifier '.evict",
        ),
    ],
    ids=[
        "no decorator", "an array of numpy", "no solve", "a tensor of the file", "an unknown argument", "a condition",
        "an operator of torch", "values",
        "a syntax error", "an error of Python's compiler", "a null byte", "half a character", "deep nesting",
        "a module of torch", "a name of torch", "an unknown name", "an instruction",
    ],
)  # fmt: skip
def test_an_error_in_the_build_comes_with_its_line_and_what_to_do(text: str, says: str, tmp_path: Path) -> None:
    assert says in build_log(text, tmp_path)


def test_a_file_in_the_encoding_that_it_names_is_read_in_it(tmp_path: Path) -> None:
    comment = "    # r\u00e9sultat\n    tl.store(x_ptr, missing)\n"
    text = "# -*- coding: latin-1 -*-\n" + HEADING + KERNEL.replace("    tl.store(x_ptr, 1.0)\n", comment)
    log = build_log(text + SOLVE + "kernel[(1,)](y)\n", tmp_path, encoding="latin-1")
    assert "softmax.py:9: error: NameError('missing is not defined')" in log


def test_the_wrappers_of_tutorials_are_graded_with_a_solve_of_two_lines(tmp_path: Path) -> None:
    for name, assignment in (("softmax", "softmax"), ("attention", "half")):
        shutil.copy(CONFORMANCE[0].with_name(f"{name}.py"), tmp_path / f"{assignment}.py")
        path, tests = tmp_path / f"{assignment}.py", {"softmax": "s02,s06", "half": "s01"}[assignment]
        [record] = submissions.grade_paths([path], Choice(assignment, tests, "emulator"))
        assert {test.verdict for test in record.tests} == {"passed"}, [test.reason for test in record.tests]


def graded(path: Path, name: str, tmp_path: Path) -> list[dict[str, str]]:
    record = tmp_path / "record.json"
    samples = suite_of(load_assignment(name)).groups["public"][1::2]
    tests = "s03..s07" if name.startswith("half") else ",".join(samples)  # half: each mask and layout
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
    words = says.split(" | ")  # `check` tries probes, and so says more than `grade`
    if NO_CAUSE in words:
        assert not any(test["cause"] for test in failed)
        return
    said = [test["reason"] for test in failed]
    assert 2 * sum(any(word in reason for word in words) for reason in said) > len(said), said


@pytest.mark.parametrize("path", sorted(ROOT.glob("student_template/*/*.py")), ids=lambda path: path.stem)
def test_the_template_runs_and_its_output_was_never_written(path: Path, tmp_path: Path) -> None:
    tests = graded(path, path.stem, tmp_path)
    assert {test["verdict"] for test in tests} == {"wrong_answer"}
    reasons = [test["reason"] for test in tests]
    assert all(re.search("NaN|never written|got (-1|255),", reason) for reason in reasons), reasons  # 0xff in each byte
    assert (
        any(re.search("` (was|were) never written", each) for each in reasons) or path.stem == "reduction"
    )  # of few bytes
    assert not any("cuda" in reason for reason in reasons), reasons


@pytest.mark.parametrize("name", ["softmax", "matmul", "half"])
def test_the_template_can_be_run_with_values(name: str) -> None:
    said = grader_process(
        "run", ROOT / f"student_template/{name}/{name}.py", "--assignment", name, "--engine", "emulator"
    )
    assert said.code == 0 and said.out.startswith("tensor([["), said.err
