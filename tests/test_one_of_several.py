"""A command with several submissions does the others, whatever one of them is."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from grader.base.attempted import Failed, attempted
from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.verdict import Fault
from grader.commands import estimating, report_files, submissions
from grader.commands.choice import Choice
from grader.course.assignment import load_assignment
from grader.programs.one_of_several import read_one_of_several
from grader.records.record import Record
from grader.report import sarif
from grader.report.estimate import Estimate
from grader.sandbox import quarantine
from tests.support.course import ROOT
from tests.support.records import made_record

MODEL = (ROOT / "reference" / "saxpy" / "naive.cu").read_bytes()
RULES = load_assignment("saxpy")
AS_OTHERS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
"""Root without the right to read what permissions deny."""


def hand_in(folder: Path, name: str) -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "saxpy.cu").write_bytes(MODEL)
    return folder / name


@pytest.mark.parametrize(
    ("error", "whose"),
    [
        (UsageError("It is empty."), Fault.STUDENT),
        (MachineFault("The disk is full."), Fault.MACHINE),
        (GraderFault("A bug."), Fault.GRADER),
        (TypeError("unhashable type: 'list'"), Fault.GRADER),
        (RecursionError(), Fault.GRADER),
    ],
)
def test_whatever_fails_is_that_submissions_line(error: Exception, whose: Fault) -> None:
    def step() -> int:
        raise error

    failed = attempted(step)
    assert isinstance(failed, Failed) and failed.whose is whose and str(error) in failed.problem
    assert attempted(lambda: 3) == 3


@pytest.mark.parametrize("mode", [0o000, 0o200])
def test_a_file_whose_author_locked_it_is_the_submissions_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    path = hand_in(tmp_path, "eve")
    for number in range(1001):
        (path / f"a{number}.txt").write_text("")

    def refuse(path: Path, flags: int, **named: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(quarantine.os, "open", refuse)
    with pytest.raises(MachineFault):
        read_one_of_several("eve", path, RULES, shared_folder=False)
    (path / "saxpy.cu").chmod(mode)
    reading = read_one_of_several("eve", path, RULES, shared_folder=False)
    assert "saxpy.cu cannot be read: Permission denied" in reading.problem
    assert (reading.submission.id, reading.submission.files) == ("eve", ())


@pytest.mark.skipif(not shutil.which("setpriv") and os.geteuid() == 0, reason="root reads everything")
def test_a_folder_that_cannot_be_entered_is_left_out(tmp_path: Path) -> None:
    inner = hand_in(tmp_path, "eve") / "sub"
    inner.mkdir()
    (inner / "a.cu").write_bytes(MODEL)
    inner.chmod(0o444)
    read = f"""
from pathlib import Path
from grader.course.assignment import load_assignment
from grader.programs.one_of_several import read_one_of_several
found = read_one_of_several("eve", Path({str(tmp_path / "eve")!r}), load_assignment("saxpy"), shared_folder=False)
print([name for name, _ in found.submission.files], found.problem)
"""
    command = [*(AS_OTHERS if os.geteuid() == 0 else ()), sys.executable, "-c", read]
    said = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    inner.chmod(0o755)
    assert said.stdout.strip() == "['saxpy.cu']", said.stderr


def test_estimates_of_a_class_go_on_after_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bob", "eve"):
        hand_in(tmp_path, name)

    def estimate(path: Path, *arguments: Any, **named: Any) -> list[Estimate]:
        if path.name == "eve":
            raise TypeError("unhashable type: 'list'")
        return [Estimate("s03", (1,), "H100", True, "", why="it has no law")]

    monkeypatch.setattr(estimating, "estimate_program", estimate)
    plan, served = estimating.class_plan([tmp_path], "saxpy")
    assert "bob: not predictable: it has no law" in plan and "eve: not predictable: The grader failed" in plan
    assert not served


def test_grading_goes_on_after_one_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [hand_in(tmp_path, name) / "saxpy.cu" for name in ("eve", "bob")]
    grade = submissions.grade

    def fails(grading: Any, submission: Any, progress: Any, *built: Any) -> Any:
        if submission.id == "eve" and not built:
            raise ValueError("not enough values to unpack")
        return grade(grading, submission, progress, *built)

    monkeypatch.setattr(submissions, "grade", fails)
    kept = tmp_path / "records.json"
    eve, bob = submissions.grade_paths(paths, Choice("saxpy", "s01", "emulator"), json=kept)
    assert eve.infrastructure_failed and "not enough values" in eve.tests[0].reason
    assert bob.tests[0].verdict == "passed" and len(json.loads(kept.read_text())) == 2


def test_a_record_that_cannot_be_rendered_is_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [made_record(name, speedups=(2.0,)) for name in ("alice", "eve", "bob")]
    said_of = sarif.render

    def fails(records: Sequence[Record]) -> str:
        if any(record.submission.id == "eve" for record in records):
            raise ValueError("not enough values to unpack")
        return said_of(records)

    monkeypatch.setattr(sarif, "render", fails)
    with pytest.raises(GraderFault, match=r"Left out of the report: eve\. The grader failed: ValueError: not enough"):
        report_files.write_reports(records, junit=tmp_path / "j.xml", sarif=tmp_path / "s.json")
    assert len(json.loads((tmp_path / "s.json").read_text())["runs"]) == 2
    assert "eve" in (tmp_path / "j.xml").read_text()


def test_loops_over_submissions_read_them_so_that_the_others_are_done() -> None:
    calls = {
        path.stem
        for folder in ("commands", "classes")
        for path in (ROOT / "grader" / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "read_submission"
    }
    assert calls <= {"estimating", "inspection", "submissions", "second_draw"}
