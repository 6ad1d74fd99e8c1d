"""Every assignment on a real GPU: models pass all graded testcases, wrong solutions are refused with their cause.

The hidden testcases of all assignments take some GB of disk and minutes of processor time for the expected outputs.
"""

import re
from pathlib import Path
from typing import Any

import pytest

from grader.base.verdict import Verdict
from grader.commands.verify_assignment import unexpected
from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.programs.engine import plan_program
from grader.programs.engine.cuda import CudaEngine
from grader.records.record import Record
from tests.support.assignments import SAYS, WITH_WRONGS, assignment_of, models, shown, template, wrongs
from tests.support.command_line import graded
from tests.support.course import QUICK, ROOT

in_triton = pytest.mark.skipif(not plan_program.triton_version(), reason=plan_program.INSTALL)
MODELS: list[Any] = [(path, name) for name in WITH_WRONGS for path in models(name)]
MODELS += [
    pytest.param(path, name, marks=in_triton)
    for path in sorted(ROOT.glob("reference/*/*.py"))
    for name in (assignment_of(path), *(["half_backward"] if path.stem == "flash" else []))
]
WRONGS: list[Any] = [path for name in WITH_WRONGS for path in wrongs(name)]
WRONGS += [
    pytest.param(path, marks=in_triton)
    for path in sorted(ROOT.glob("reference/*/wrong/*.py"))
    if SAYS.search(path.read_text())
]
TEMPLATES: list[Any] = [(template(name), name) for name in WITH_WRONGS]
TEMPLATES += [
    pytest.param(path.with_suffix(".py"), name, marks=in_triton)
    for path, name in TEMPLATES
    if path.with_suffix(".py").exists()
]


def graded_here(path: Path, name: str, tmp_path: Path, tests: str) -> dict[str, Any]:
    return graded(path, tmp_path, tests, "--assignment", name, "--engine", "cuda")


def named(value: Path | str) -> str:
    return value if isinstance(value, str) else shown(value)


def passed(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The record's tests, which must have passed with a time that is believed."""
    for test in record["tests"]:
        assert test["verdict"] == "passed", f"{test['name']}: {test['reason']}"
        assert test["timing_refused"] == "" and test["flags"] == []
        assert test["gpu_ms"] is not None, test
        assert 0 < test["gpu_ms"] < 1e3 * test["wall_s"]
        floor = test["floor"]
        assert floor is None or (0 < floor["share"] <= 1 and floor["gbytes_per_s"] > 0)
    return list(record["tests"])


@pytest.mark.timeout(900)  # one process makes an assignment's testcases, others wait for them
@pytest.mark.parametrize(("path", "name"), MODELS, ids=named)
def test_a_model_solution_passes_every_graded_test(path: Path, name: str, tmp_path: Path) -> None:
    phases = [phase.name for phase in load_assignment(name).phases]
    for test in passed(graded_here(path, name, tmp_path, "all,public" if phases else "all")):
        if not phases or test["name"].startswith("t"):
            continue
        assert [each for each in test["phases_ms"] if each != "other"] == phases  # a memset is of none
        times = [time for time in test["phases_ms"].values() if time is not None]
        assert len(times) >= len(phases) or path.parent.name != name  # kernels of half/ have other names
        assert all(time > 0 for time in times)
        assert sum(times) == pytest.approx(test["gpu_ms"], rel=0.5)


@pytest.mark.parametrize(("path", "name"), MODELS, ids=named)
def test_a_model_solution_is_timed(path: Path, name: str, tmp_path: Path, hurried: CudaEngine) -> None:
    """The first and the last test whose time earns points, and the largest of all, with the assignment's time limit."""
    rules = load_assignment(name)
    suite = load_suite(rules.testcases_file)
    first, *_, last = suite.select(rules.timed_tests or "all")
    largest = max(suite.graded, key=lambda case: case.flops)
    tests = passed(graded_here(path, name, tmp_path, f"{first.name},{last.name},{largest.name}"))
    assert {first.name, last.name} <= {test["name"] for test in tests if test["timing"] is not None}


@pytest.mark.parametrize(("path", "name"), TEMPLATES, ids=named)
def test_the_template_fails_politely(path: Path, name: str, tmp_path: Path) -> None:
    record = graded_here(path, name, tmp_path, QUICK)
    assert {test["verdict"] for test in record["tests"]} == {"wrong_answer"}
    assert all(
        re.search("is empty|exactly 0|NaN|never written|got (-1|255),", test["reason"]) for test in record["tests"]
    )


@pytest.mark.parametrize("path", WRONGS, ids=shown)
def test_a_wrong_solution_is_refused_with_its_cause(path: Path, tmp_path: Path) -> None:
    record = Record.model_validate(graded_here(path, assignment_of(path), tmp_path, "public"))
    assert any(test.verdict is not Verdict.PASSED for test in record.tests)
    failed = [test for test in record.tests if test.verdict is not Verdict.PASSED]
    # The expected words may be those of the emulator's watch: here an experiment may have found the cause, in other
    # words; and where one test shows a cause that is certain, none is made for the others.
    assert unexpected(path, record) == "" or any(test.cause for test in failed)
