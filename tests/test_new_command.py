"""`grader new NAME`: a skeleton that grades, and that nothing can fool."""

import shutil
from pathlib import Path

import pytest

from grader.base.paths import course_root
from tests.support.command_line import grader
from tests.support.course import ROOT


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "assignment").mkdir()
    (tmp_path / "reference").mkdir()
    shutil.copy(ROOT / "reference/sequential.h", tmp_path / "reference")
    monkeypatch.setenv("GRADER_ROOT", str(tmp_path))
    return tmp_path


def test_a_skeleton_stands_up_to_verify_at_once(course: Path) -> None:
    said = grader("new", "mine")
    assert said.code == 0, said.err
    assert len(list(course.rglob("*mine*"))) >= 5
    said = grader("assignments", "verify", "mine", "--engine", "emulator")
    assert said.code == 0, said.out
    for what in ("the model solution solution.cu", "the template mine.cu", "the wrong solution added.cu"):
        assert f"ok       {what}" in said.out


@pytest.mark.parametrize(("name", "says"), [("Mine", "cannot be a name"), ("../mine", "cannot be a name")])
def test_a_name_that_cannot_be_one_is_refused(course: Path, name: str, says: str) -> None:
    said = grader("new", name)
    assert said.code == 2 and says in said.err


def test_nothing_is_overwritten(course: Path) -> None:
    assert course_root() != ROOT
    assert grader("new", "mine").code == 0
    (course / "testcases/mine.yaml").write_text("mine\n")
    said = grader("new", "mine")
    assert said.code == 2 and "exists already" in said.err
    assert (course / "testcases/mine.yaml").read_text() == "mine\n"
