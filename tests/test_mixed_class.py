"""One class, one board: a CUDA program, a CUDA function and, where Triton is installed, a Triton program."""

import csv
import importlib.util
import io
import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import grader
from tests.support.course import ROOT

HAS_TRITON = importlib.util.find_spec("triton") is not None


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "course"
    for folder in ("assignment/saxpy", "reference/saxpy", "student_template/saxpy"):
        shutil.copytree(ROOT / folder, root / folder)
    (root / "testcases").mkdir()
    shutil.copy(ROOT / "testcases/saxpy.yaml", root / "testcases")
    shutil.copy(ROOT / "reference/sequential.h", root / "reference")
    rules = root / "assignment/saxpy/assignment.yaml"
    rules.write_text(rules.read_text().replace("contract: function", "contract: either"))
    monkeypatch.setenv("GRADER_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    return root


def test_programs_functions_and_triton_are_graded_as_one_class_with_one_board_and_site(
    course: Path, tmp_path: Path
) -> None:
    files = {"fay": ROOT / "reference/saxpy/naive.cu", "pat": ROOT / "tests/fixtures/mixed_class/program.cu"}
    if HAS_TRITON:
        files["tri"] = ROOT / "reference/saxpy/blocks.py"
    for student, source in files.items():
        (tmp_path / "class" / student).mkdir(parents=True)
        shutil.copy(source, tmp_path / "class" / student / f"saxpy{source.suffix}")
    store = tmp_path / "class.sqlite"
    words = ("--assignment", "saxpy", "--engine", "emulator", "--tests", "s01,s03")
    said = grader("grade", tmp_path / "class", *words, "--store", store, "--json", tmp_path / "all.json", cwd=tmp_path)
    assert said.code == 0, said.err
    records = json.loads((tmp_path / "all.json").read_text())
    assert {record["submission"]["id"] for record in records} == set(files)
    assert {test["verdict"] for record in records for test in record["tests"]} == {"passed"}
    said = grader("leaderboard", "--store", store, "--metric", "correctness", "--names", "id", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert {row["name"] for row in rows} == set(files) and {row["rank"] for row in rows} == {"1"}
    said = grader("site", tmp_path / "site", "--store", store)
    assert said.code == 0, said.err
    pages = "".join(page.read_text() for page in (tmp_path / "site/assistants").rglob("*.html"))
    assert all(student in pages for student in files)
