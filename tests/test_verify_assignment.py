"""`grader assignments verify`: what nobody computed must not pass, and public testcases have every kind of shape.

With GRADER_TEST_EVERYTHING=1 all programs of every assignment are built and run, too: minutes for each.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from grader.base.errors import MachineFault
from grader.commands import verify_assignment
from grader.commands.verify_assignment import Tried, models, refused_outputs, unseen_shapes
from grader.course.assignment import Assignment, load_assignment
from grader.course.coherence import suite_of
from grader.programs.engine.plan_program import NEEDS_TRITON
from tests.support.assignments import NAMES
from tests.support.command_line import grader

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
