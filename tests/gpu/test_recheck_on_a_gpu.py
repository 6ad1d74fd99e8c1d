"""Places on a leaderboard, on a real GPU: model solutions handed in by students repeat on a second draw."""

import json
import shutil
from pathlib import Path

import pytest

from grader.base.verdict import Verdict
from grader.commands.cli import main
from grader.programs.engine.cuda import CudaEngine
from grader.store import open_store
from tests.support.course import ROOT

TESTS = "t26"  # timed repeatedly, so an outside clock sees it


def run(*words: object) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    assert ended.value.code == 0


def test_honest_times_repeat_on_a_second_draw(
    tmp_path: Path, gpu: CudaEngine, capsys: pytest.CaptureFixture[str]
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
    for test in (test for record in graded for test in record.tests):
        cpu_s = [test.cpu_s, *(run.cpu_s for run in (test.timing.runs if test.timing is not None else ()))]
        with capsys.disabled():
            print(f"{test.name}: {test.gpu_ms} ms; processor time {cpu_s} s, sequential", test.baseline, test.flags)
    assert [(record.build.log, record.flags) for record in graded] == [("", ()), ("", ())]
    assert all(test.verdict is Verdict.PASSED for record in graded for test in record.tests)
    run("leaderboard", "--store", store, "--metric", "gpu_ms", "--names", "id", "--format", "json", "--recheck")
    said = capsys.readouterr()
    found = json.loads(said.out)
    placed = [(row["rank"], row["name"]) for row in found["rows"] if row["recheck"] == "passed"]
    assert (placed, found["refused"]) == ([(1, "ann"), (2, "ben")], []), f"{found}; {said.err}"
    with open_store(store) as opened:
        rechecks = [attempt.record.recheck for attempt in opened.attempts("hw4")]
    for recheck in rechecks:
        assert recheck is not None
        for again in recheck.tests:
            assert again.gpu_ms is not None and again.graded_ms is not None
            print(f"{again.name}: {again.gpu_ms:.4f} ms now, {again.graded_ms:.4f} ms when graded")
