"""docs/new-assignment.md, followed literally in a copy of the course: write every file it shows, run what it runs."""

import re
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import grader
from tests.support.course import ROOT

PAGE = (ROOT / "docs/new-assignment.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the course as far as the commands need it, with the new assignment in it."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("assignment/hw4", "reference/hw4"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "testcases").mkdir()
    for name in ("testcases/hw4.yaml", "reference/sequential.h"):
        shutil.copy(ROOT / name, root / name)
    for name, content in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content, encoding="utf-8")
    return root


def test_the_files_are_as_many_lines_as_the_page_says_and_fewer_than_150() -> None:
    cuda = sum(content.count("\n") for name, content in FILES.items() if name.endswith(".cu"))
    others = sum(content.count("\n") for content in FILES.values()) - cuda
    said = re.search(r"are (\d+) lines: (\d+) of Python, YAML and C, and (\d+) of CUDA", PAGE)
    assert said is not None and tuple(map(int, said.groups())) == (others + cuda, others, cuda)
    assert others + cuda < 150


def test_every_command_of_the_page_works_and_the_solution_passes(checkout: Path) -> None:
    *_, block = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    commands = [line.split() for line in block.splitlines()]
    assert len(commands) == 5
    said = ""
    for program, *words in commands:
        assert program == "grader"
        words += ["--engine", "emulator"] if words[0] == "grade" else []
        done = grader(*words, cwd=checkout, GRADER_ROOT=str(checkout))
        assert done.code == 0, done.err
        said += done.out
    assert "rmsnorm" in said
    assert "s02: ok, 4,000 values recomputed" in said
    assert len(re.findall(r"^s0[12] .* passed ", said, re.MULTILINE)) == 2
    assert "Practice score: 70 of 70 points" in said


def test_attention_in_half_precision_with_other_shapes_is_an_assignment_without_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, content in re.findall(r"<!-- data: (\S+) -->\n```yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    shutil.copytree(ROOT / "reference/half", tmp_path / "reference/cs149")
    for name in ("half.h", "sequential.h"):
        shutil.copy(ROOT / "reference" / name, tmp_path / "reference" / name)
    monkeypatch.setenv("GRADER_ROOT", str(tmp_path))
    assert grader("testcases", "generate", "public").code == 0
    assert "s02: ok, 16,640 values recomputed" in grader("testcases", "verify", "public", "--full").out
    assert grader("baseline", "--tests", "s01").code == 0
    assert "8192 x 128" in grader("testcases", "list").out
