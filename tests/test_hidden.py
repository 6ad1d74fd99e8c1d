"""Hidden testcases: their order, their fresh draws, and what a student reads of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from grader.assignment import HiddenInputs, load_assignment
from grader.catalogue import TestcaseFiles, generate, state
from grader.errors import MachineFault
from grader.grading import Grading, grade
from grader.hidden import (
    both,
    drawn_sentence,
    fresh_files,
    kept_hidden,
    shows_diagnosis,
    shuffled,
    to_draw_again,
    without_values,
)
from grader.judge import Judgement
from grader.progress import Silent
from grader.record import TestRecord
from grader.sandbox import runner
from grader.submission import read_submission
from grader.testcase import Case, Suite, load_suite
from grader.verdict import Fault, Verdict
from tests.batch_engine import PlainC
from tests.conftest import goes

YAML = """
assignment: hw4
operator: attention_forward
groups:
  - name: official
    graded: true
    hidden: true
    distribution: {kind: uniform, low: -3, high: 3}
    cases: {t01: [2, 128, 32], t02: [3, 128, 32], t03: [4, 128, 32]}
  - name: public
    graded: false
    hidden: false
    seed: known
    distribution: {kind: uniform, low: -3, high: 3}
    cases: {s01: [2, 128, 32]}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    (tmp_path / "hw4.yaml").write_text(YAML)
    return load_suite(tmp_path / "hw4.yaml")


def record(name: str, verdict: Verdict = Verdict.PASSED, reason: str = "") -> TestRecord:
    fault = None if verdict is Verdict.PASSED else Fault.STUDENT
    return TestRecord(name=name, shape=(2, 128, 32), verdict=verdict, fault=fault, reason=reason)


def test_every_case_runs_once_in_an_order_of_its_own(suite: Suite) -> None:
    orders = {tuple(case.name for case in shuffled(suite.select("all"))) for _ in range(100)}
    assert all(sorted(order) == ["t01", "t02", "t03"] for order in orders)
    assert len(orders) > 1


def test_only_hidden_cases_that_passed_are_drawn_again(suite: Suite) -> None:
    tests = {"t01": record("t01"), "t02": record("t02", Verdict.WRONG_ANSWER), "s01": record("s01")}
    rules = HiddenInputs(fresh=5, fresh_from="all,public")
    assert [case.name for case in to_draw_again(rules, suite, tests)] == ["t01"]


def test_two_gradings_and_the_usual_file_have_three_different_inputs(suite: Suite, tmp_path: Path) -> None:
    case = suite.cases["t01"]
    usual = TestcaseFiles(tmp_path / "usual")
    generate(case, usual, suite.seed(case))
    inputs = {usual.input(case).read_bytes()}
    for _ in range(2):
        with fresh_files(suite, [case]) as drawn:
            for _, files in drawn:
                assert case.operator.read_header(files.input(case)) == case.shape
                inputs.add(files.input(case).read_bytes())
    assert len(inputs) == 3
    assert goes(files.folder)


def test_fresh_files_come_one_case_after_the_other_and_go_with_it(suite: Suite) -> None:
    cases, gone = suite.select("s01,t01,t02"), list[TestcaseFiles]()
    with fresh_files(suite, cases) as drawn:
        for case, files in drawn:
            assert state(case, files) == "ready"
            assert all(goes(before.folder) for before in gone)
            gone.append(files)
    assert len(gone) == 3 and goes(gone[-1].folder.parent)


def test_who_stops_does_not_wait_for_fresh_files(suite: Suite) -> None:
    cases = suite.select("t01,t02,t03")
    with pytest.raises(KeyboardInterrupt), fresh_files(suite, cases) as drawn:
        _, files = next(drawn)
        raise KeyboardInterrupt
    assert goes(files.folder.parent)


def test_a_case_that_is_wrong_on_fresh_values_has_failed() -> None:
    judged = both(record("t01"), record("t01", Verdict.WRONG_ANSWER, "All differ."))
    assert judged.verdict is Verdict.WRONG_ANSWER
    assert judged.reason == "Right on the testcase's usual values, but not on others of the same shape: All differ."
    assert both(record("t01"), record("t01")).verdict is Verdict.PASSED


def test_a_fault_of_the_machine_on_a_fresh_draw_costs_nothing() -> None:
    broken = record("t01", Verdict.GRADER_ERROR).model_copy(update={"fault": Fault.MACHINE})
    assert both(record("t01"), broken).verdict is Verdict.PASSED


@pytest.mark.parametrize("room", [0, 1])
def test_where_there_is_no_room_for_fresh_values_the_record_says_so_and_nobody_pays(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    def one_fits(case: Case, files: TestcaseFiles, *rest: object) -> None:
        made.append(case.name)
        if len(made) > room:
            raise MachineFault("The disk is full; free some space.")
        generate(case, files, *rest)  # type: ignore[arg-type]

    made: list[str] = []
    cases, usual = suite.select("t01,t02,t03"), TestcaseFiles(tmp_path / "usual")
    for case in cases:
        generate(case, usual, suite.seed(case))
    monkeypatch.setattr("grader.hidden.generate", one_fits)
    rules = load_assignment("hw4")
    rules = rules.model_copy(update={"hidden_inputs": HiddenInputs(fresh=2), "rubric": rules.rubric[:1]})
    source = rules.reference_folder / "seq_flash_attention.c"
    (tmp_path / "alice").mkdir()
    shutil.copyfile(source, tmp_path / "alice" / rules.submission.main)
    submission = read_submission(tmp_path / "alice", rules, runner(10))
    record = grade(Grading(rules, suite, usual, cases, PlainC(), None), submission, Silent())
    assert [test.verdict for test in record.tests] == [Verdict.PASSED] * 3
    assert record.hidden_inputs.startswith(f"{room} of 3 hidden testcases")
    assert record.hidden_inputs.endswith("but the machine could not: The disk is full; free some space.")


def test_the_record_says_how_many_were_drawn_again(suite: Suite) -> None:
    cases = suite.select("all")
    assert drawn_sentence(cases[:1], cases).startswith("1 of 3 hidden testcases (t01) were also run on values drawn")
    assert drawn_sentence([], suite.select("public")) == ""


@pytest.mark.parametrize(
    ("show", "diagnosis", "reason"),
    [("diagnosis", True, "12 differ."), ("values", False, "12 differ."), ("verdict", False, "The output is wrong.")],
)
def test_a_student_reads_of_hidden_cases_what_the_instructor_allows(
    suite: Suite, show: str, diagnosis: bool, reason: str
) -> None:
    rules = HiddenInputs.model_validate({"show": show})
    wrong = Judgement(Verdict.WRONG_ANSWER, Fault.STUDENT, "12 differ.")
    assert shows_diagnosis(rules, suite.cases["t01"]) is diagnosis
    assert kept_hidden(wrong, rules, suite.cases["t01"], "12 differ.").reason == reason
    assert shows_diagnosis(rules, suite.cases["s01"])
    assert kept_hidden(wrong, rules, suite.cases["s01"], "12 differ.").reason == "12 differ."


@pytest.mark.parametrize(("show", "hidden"), [("values", False), ("verdict", True)])
def test_neither_an_error_nor_what_a_program_prints_gets_around_it(suite: Suite, show: str, hidden: bool) -> None:
    rules, case = HiddenInputs.model_validate({"show": show}), suite.cases["t01"]
    crashed = Judgement(Verdict.RUNTIME_ERROR, Fault.STUDENT, "cudaFree failed. Element 3 is 1, not 2.")
    told = kept_hidden(crashed, rules, case, "Element 3 is 1, not 2.").reason
    assert told == ("cudaFree failed. The output is wrong." if hidden else crashed.reason)
    values = {"output": "my input is 0.25", "max_error": 1.5, "wrong_elements": 12}
    test = record("t01", Verdict.WRONG_ANSWER).model_copy(update=values)
    kept = without_values(test, rules, case)
    assert (kept.output, kept.max_error, kept.wrong_elements) == (
        ("", None, None) if hidden else tuple(values.values())
    )
    assert without_values(test, rules, suite.cases["s01"]) == test


def test_a_time_that_is_doubted_on_a_fresh_draw_is_not_compared_any_more() -> None:
    timed = record("t01").model_copy(update={"gpu_ms": 1.0, "speedup": 1000.0})
    doubted = record("t01").model_copy(update={"flags": ("Odd.",), "timing_refused": "Odd."})
    judged = both(timed, doubted)
    assert (judged.verdict, judged.timing_refused, judged.flags) == (Verdict.PASSED, "Odd.", ("Odd.",))
    assert (judged.gpu_ms, judged.speedup) == (None, None)
    assert both(timed, record("t01")) == timed
