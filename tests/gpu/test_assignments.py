"""Every assignment on a real GPU: models pass all graded testcases, wrong solutions are refused with their cause.

The hidden testcases of all assignments take some GB of disk and minutes of processor time for the expected outputs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from grader.course.assignment import load_assignment
from grader.programs.engine.cuda import CudaEngine
from tests.support.assignments import SAYS, WITH_WRONGS, assignment_of, models, shown, template, wrongs
from tests.support.command_line import grader

MODELS = [path for name in WITH_WRONGS for path in models(name)]
WRONGS = [path for name in WITH_WRONGS for path in wrongs(name)]


def graded(path: Path, tmp_path: Path, tests: str) -> dict[str, Any]:
    record = tmp_path / "record.json"
    said = grader(
        "grade", path, "--assignment", assignment_of(path), "--engine", "cuda", "--tests", tests, "--json", record
    )
    assert said.code == 0, said.err
    content: dict[str, Any] = json.loads(record.read_text())
    return content


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("path", MODELS, ids=shown)
def test_a_model_solution_passes_everything_and_is_timed(path: Path, tmp_path: Path, gpu: CudaEngine) -> None:
    record = graded(path, tmp_path, "all,public")
    for test in record["tests"]:
        assert test["verdict"] == "passed", f"{test['name']}: {test['reason']}"
        assert test["timing_refused"] == "" and test["flags"] == []
        assert 0 < test["gpu_ms"] < 1e3 * test["wall_s"]
        assert test["floor"] is None or 0 < test["floor"]["share"] <= 1
        assert test["floor"] is None or test["floor"]["gbytes_per_s"] > 0


@pytest.mark.parametrize("name", [name for name in WITH_WRONGS if load_assignment(name).phases])
def test_phases_are_timed_and_sum_to_the_whole(name: str, tmp_path: Path, gpu: CudaEngine) -> None:
    phases = [phase.name for phase in load_assignment(name).phases]
    for path in models(name):
        for test in graded(path, tmp_path, "public")["tests"]:
            assert list(test["phases_ms"]) == phases  # and no `other`
            assert all(time > 0 for time in test["phases_ms"].values())
            assert sum(test["phases_ms"].values()) == pytest.approx(test["gpu_ms"], rel=0.5)


@pytest.mark.parametrize("name", WITH_WRONGS)
def test_the_template_fails_every_test_politely(name: str, tmp_path: Path, gpu: CudaEngine) -> None:
    record = graded(template(name), tmp_path, "public")
    assert {test["verdict"] for test in record["tests"]} == {"wrong_answer"}
    assert all("exactly 0" in test["reason"] for test in record["tests"])


@pytest.mark.parametrize("path", WRONGS, ids=shown)
def test_a_wrong_solution_is_refused_with_its_cause(path: Path, tmp_path: Path, gpu: CudaEngine) -> None:
    said = SAYS.search(path.read_text(encoding="utf-8"))
    assert said is not None
    failed = [test for test in graded(path, tmp_path, "public")["tests"] if test["verdict"] != "passed"]
    explained = [test for test in failed if said[1] in test["reason"]]
    assert failed and 2 * len(explained) > len(failed), [test["reason"] for test in failed]
