"""`grader assignments verify`: what nobody computed must not pass, and public testcases have every kind of shape.

With GRADER_TEST_EVERYTHING=1 all programs of every assignment are built and run, too: minutes for each.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from grader.base.errors import MachineFault
from grader.base.verdict import Verdict
from grader.commands import verify_assignment
from grader.commands.verify_assignment import Tried, models, refused_outputs, unexpected, unseen_shapes
from grader.course.assignment import Assignment, load_assignment
from grader.course.coherence import suite_of
from grader.operators.base import Alternate, Rows, Shape, Tensors
from grader.programs.engine.plan_program import NEEDS_TRITON
from tests.support.assignments import NAMES
from tests.support.command_line import grader
from tests.support.records import made_record, made_test

QUICK = [name for name in NAMES if sum(c.flops for c in suite_of(load_assignment(name)).select("public")) < 1e8]


@pytest.mark.parametrize("name", NAMES)
def test_the_public_testcases_have_every_kind_of_shape_of_the_graded_ones(name: str) -> None:
    rules = load_assignment(name)
    assert [found.line(rules) for found in unseen_shapes(suite_of(rules)) if found.refuses(rules)] == []


@pytest.mark.parametrize("name", QUICK)
def test_an_output_that_nobody_computed_fails_a_public_testcase(name: str) -> None:
    rules = load_assignment(name)
    found = list(refused_outputs(rules, suite_of(rules)))
    assert len(found) >= 4
    assert [each.line(rules) for each in found if each.refuses(rules)] == []


def test_a_tolerance_that_lets_half_precision_pass_is_refused_unless_the_rules_say_why() -> None:
    rules = load_assignment("saxpy").model_copy(update={"tolerance": 0.5})
    refused = [found for found in refused_outputs(rules, suite_of(rules)) if found.refuses(rules)]
    assert [found.key for found in refused] == ["half precision"]
    excused = rules.model_copy(update={"exceptions": {"half precision": "the course allows it"}})
    assert not refused[0].refuses(excused) and "the course allows it" in refused[0].line(excused)


def test_the_command_shows_what_was_refused_and_ends_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify_assignment, "_programs", lambda rules, suite, engine: [Tried("a model", "it fails")])
    said = grader("assignments", "verify", "saxpy")
    assert said.code == 1
    assert "REFUSED  a model: it fails" in said.out and "saxpy: 1 of " in said.out


@pytest.mark.skipif(os.environ.get("GRADER_TEST_EVERYTHING") != "1", reason="minutes for each assignment")
@pytest.mark.parametrize("name", NAMES)
def test_every_assignment_stands(name: str) -> None:
    said = grader("assignments", "verify", name, "--engine", "emulator")
    assert said.code == 0, said.out


def test_programs_of_a_language_that_this_machine_cannot_run_are_untried_and_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cannot(*_: object) -> None:
        raise MachineFault(NEEDS_TRITON)

    rules = load_assignment("softmax")
    monkeypatch.setattr(verify_assignment, "_graded", cannot)
    found = list(verify_assignment._programs(rules, suite_of(rules), "emulator"))
    assert f"untried  the model solution online.py: {NEEDS_TRITON}" in [each.line(rules) for each in found]
    assert not any(each.refuses(rules) for each in found)


def test_the_model_solutions_of_a_backward_pass_may_lie_next_to_the_forward_programs() -> None:
    assert {"backward_mma.cu", "naive.cu"} <= {path.name for path in models(load_assignment("half_backward"))}
    assert not any(path.name.startswith("backward") for path in models(load_assignment("half")))


def test_a_sequential_program_with_a_wrong_output_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = load_assignment("saxpy")
    own = rules.reference_folder / rules.baseline.source
    (tmp_path / "saxpy").mkdir()
    (tmp_path / "sequential.h").write_bytes((own.parent.parent / "sequential.h").read_bytes())
    wrong = own.read_text(encoding="utf-8").replace("+ y[i]", "- y[i]")
    (tmp_path / "saxpy" / own.name).write_text(wrong, encoding="utf-8")
    monkeypatch.setattr(Assignment, "reference_folder", tmp_path / "saxpy")
    suite = suite_of(rules)
    case = suite.cases["s03"]
    said = verify_assignment._of_sequential(rules, case, verify_assignment._ready(suite))
    assert "values" in said and "differ" in said


def the_sum(shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> NDArray[np.float64]:
    return (tensors[0].astype(np.float64) + tensors[1])[rows]


def without_last(shape: Shape, tensors: Tensors, rows: Rows = slice(None)) -> NDArray[np.float64]:
    return np.ones((int(shape[0]) - 1, 1))


@pytest.mark.parametrize(
    ("compute", "problem"),
    [
        (the_sum, ""),
        (lambda shape, tensors, rows: the_sum(shape, tensors), "it fails: .* must return an array of shape"),
        (without_last, "it fails: .* must return an array of shape"),
        (
            lambda shape, tensors, rows: the_sum(shape, tensors)[: len(tensors[0][rows])],
            "it fails: asked for some rows",
        ),
        (lambda shape, tensors, rows: tensors[2][rows], "it fails: tuple index out of range"),
        (lambda shape, tensors, rows: (shape[1] * tensors[0] + tensors[1])[rows], "is right on every public testcase"),
    ],
)
def test_an_alternate_that_fails_or_is_no_mistake_is_refused(
    compute: Callable[[Shape, Tensors, Rows], NDArray[np.float64]], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = load_assignment("saxpy")
    suite = suite_of(rules)
    monkeypatch.setattr(type(suite.operator), "alternates", lambda self: (Alternate("own", "It is so.", compute),))
    (found,) = verify_assignment.alternates(rules, suite)
    assert found.refuses(rules) == bool(problem) and re.search(problem, found.line(rules))


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("// expect: wrong_answer on most: seldom | is missing in Z", ""),
        ("# expect: wrong_answer on most: is missing in Z", ""),
        ("", None),
        (
            "// expect: wrong_answer on most: goes astray",
            "expected wrong_answer: goes astray; s03 found wrong_answer: X",
        ),
        ("// expect: runtime_error on most: is missing in Z", "expected runtime_error"),
        ("// expect: wrong_answer on most: no cause is named", "s03 found wrong_answer"),
        ("// expect wrong_answer", "line 2 must be"),
    ],
)
def test_a_wrong_solution_must_fail_as_its_second_line_expects(
    second: str, problem: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "wrong.cu"
    path.write_text(f"// A mistake.\n{second}\n", encoding="utf-8")
    wrong = {"reason": "X[3] is missing in Z", "cause": "X[3] is missing"}
    found = unexpected(path, made_record(tests=[made_test("s01"), made_test("s03", Verdict.WRONG_ANSWER, **wrong)]))
    assert found == problem if not problem else found is not None and problem in found
    assert unexpected(path, made_record(tests=[made_test("s01")])) is None
