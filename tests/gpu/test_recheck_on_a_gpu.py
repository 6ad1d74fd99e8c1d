"""Places on a leaderboard, on a real GPU: model solutions handed in by students repeat on a second draw."""

import json
import shutil
from pathlib import Path

import pytest

from grader.base.verdict import Verdict
from grader.programs.engine.cuda import CudaEngine
from grader.store import open_store
from tests.support.command_line import run
from tests.support.course import ROOT

TESTS = "t26"  # timed repeatedly, so an outside clock sees it


def test_honest_times_repeat_on_a_second_draw(
    tmp_path: Path, timed: CudaEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    for student, solution in (("ann", "flash2.cu"), ("ben", "tiled.cu")):
        (tmp_path / "class" / student).mkdir(parents=True)
        shutil.copyfile(ROOT / "reference/hw4" / solution, tmp_path / "class" / student / "hw4.cu")
        shutil.copy(ROOT / "reference/hw4/whole_program.cuh", tmp_path / "class" / student)  # flash2.cu includes it
    store = tmp_path / "class.sqlite"
    run("grade", tmp_path / "class", "--tests", TESTS, "--store", store, "--engine", "cuda")
    capsys.readouterr()
    with open_store(store) as opened:
        graded = [attempt.record for attempt in opened.attempts("hw4")]
    assert [(record.build.log, record.flags) for record in graded] == [("", ()), ("", ())]
    assert all(test.verdict is Verdict.PASSED for record in graded for test in record.tests)
    run("leaderboard", "--store", store, "--metric", "gpu_ms", "--names", "id", "--format", "json", "--recheck")
    said = capsys.readouterr()
    found = json.loads(said.out)
    placed = [(row["rank"], row["name"]) for row in found["rows"] if row["recheck"] == "passed"]
    assert (placed, found["refused"]) == ([(1, "ann"), (2, "ben")], []), f"{found}; {said.err}"
    with open_store(store) as opened:
        rechecks = [attempt.record.recheck for attempt in opened.attempts("hw4")]
    measured = [again for recheck in rechecks if recheck is not None for again in recheck.tests]
    assert len(measured) == 2
    assert all(again.gpu_ms is not None and again.graded_ms is not None for again in measured)
