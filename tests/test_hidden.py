"""Hidden testcases: their order, their fresh draws, and what a student reads of them."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import MachineFault
from grader.base.progress import Progress
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import STUDENT_VERDICTS, Fault, Verdict
from grader.checking.check import Check
from grader.checking.scan import TensorErrors
from grader.course.assignment import Assignment, HiddenInputs, load_assignment
from grader.course.catalogue import TestcaseFiles, generate, state
from grader.course.testcase import Case, Suite, load_suite
from grader.grading.hidden_testcases import drawn_sentence, fresh_files, shows_diagnosis, shuffled, to_draw_again
from grader.grading.judgement import Judgement
from grader.grading.one_test import grade_case
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.grading.tested import GpuTime, NotMeasured, Ran, Refused, Tested, Times, both, record_of
from grader.operators.tolerance import Limit
from grader.programs.build import build
from grader.programs.submission import read_submission
from grader.records.disclosure import Doubt, disclosed_profile
from grader.records.record import ProfileRecord
from tests.support.batch_engine import PlainC
from tests.support.machine import goes
from tests.support.sequential import right_program

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


def rules_of_hw4(*, fresh: int) -> Assignment:
    """Its rules without those that name tests which `suite` lacks."""
    rules = load_assignment("hw4")
    limits = rules.limits.model_copy(update={"emulator_cpu_s": ()})
    hidden = HiddenInputs(fresh=fresh)
    return rules.model_copy(update={"hidden_inputs": hidden, "rubric": rules.rubric[:1], "limits": limits})


RAN = Ran(wall_s=1.0, limit_s=9.0, cpu_s=1.0, ending="exit code 0", printed="", kernels=1)


def facts(case: Case, verdict: Verdict = Verdict.PASSED, reason: str = "") -> Tested:
    fault = None if verdict is Verdict.PASSED else Fault.STUDENT
    return Tested(case, Judgement(verdict, fault, reason), RAN)


def test_every_case_runs_once_in_an_order_of_its_own(suite: Suite) -> None:
    orders = {tuple(case.name for case in shuffled(suite.select("all"))) for _ in range(100)}
    assert all(sorted(order) == ["t01", "t02", "t03"] for order in orders)
    assert len(orders) > 1


def test_only_hidden_cases_that_passed_are_drawn_again(suite: Suite) -> None:
    passed = {suite.cases["t01"], suite.cases["s01"]}
    rules = HiddenInputs(fresh=5, fresh_from="all,public")
    assert [case.name for case in to_draw_again(rules, suite, passed)] == ["t01"]


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


def test_a_case_that_is_wrong_on_fresh_values_has_failed(suite: Suite) -> None:
    passed = facts(suite.cases["t01"])
    judged = record_of(both(passed, facts(suite.cases["t01"], Verdict.WRONG_ANSWER, "All differ.")), HiddenInputs())
    assert judged.verdict is Verdict.WRONG_ANSWER
    assert "on other values of the same shape: All differ." in judged.reason
    assert both(passed, passed).passed


def test_a_fault_of_the_machine_on_a_fresh_draw_costs_nothing(suite: Suite) -> None:
    broken = Tested(suite.cases["t01"], Judgement(Verdict.GRADER_ERROR, Fault.MACHINE, "It broke."))
    assert both(facts(suite.cases["t01"]), broken).passed


def test_a_time_that_is_refused_on_a_fresh_draw_is_refused(suite: Suite) -> None:
    passed = replace(facts(suite.cases["t01"]), times=Times(GpuTime(1.0)))
    assert both(passed, passed) == passed
    doubted = replace(passed, times=Times(NotMeasured("")).refused(Doubt("No kernel ran")))
    made = record_of(both(passed, doubted), HiddenInputs())
    assert (made.verdict, made.gpu_ms, made.timing_refused) == (Verdict.PASSED, None, "No kernel ran.")
    assert made.flags == ("No kernel ran.",)


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
    monkeypatch.setattr("grader.grading.hidden_testcases.generate", one_fits)
    rules = rules_of_hw4(fresh=2)
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / rules.submission.main).write_text(right_program())
    submission = read_submission(tmp_path / "alice", rules)
    record = grade(Grading(rules, suite, usual, cases, PlainC()), submission, Progress())
    assert [test.verdict for test in record.tests] == [Verdict.PASSED] * 3
    assert record.hidden_inputs.startswith(f"{room} of 3 hidden testcases")
    assert record.hidden_inputs.endswith("The machine could not run the others: The disk is full; free some space.")


def test_a_second_draw_lies_in_the_same_kind_of_place_as_the_graded_input(suite: Suite, tmp_path: Path) -> None:
    """A program says where its input is, letter by letter, since the grader takes paths out of what it prints."""
    usual = TestcaseFiles(tmp_path / "usual")
    cases = suite.select("t01")
    generate(cases[0], usual, suite.seed(cases[0]))
    rules = rules_of_hw4(fresh=1)
    source = right_program()
    begin = "int main(int argc, char **argv)\n{\n"
    said = begin + '    for (const char *at = argv[1]; *at; at++)\n        fprintf(stderr, "%c.", *at);\n'
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice" / rules.submission.main).write_text(source.replace(begin, said))
    places = []
    for files in (usual, usual):
        submission = read_submission(tmp_path / "alice", rules)
        grading = Grading(rules, suite, files, cases, PlainC())
        record = grade(grading, submission, Progress())
        assert record.hidden_inputs.startswith("1 of 1")
        places.append(record.tests[0].output)
    drawn = TestcaseFiles(tmp_path / "drawn")
    generate(cases[0], drawn, suite.fresh_seed(cases[0], "f" * 16))
    built = build(submission, rules, PlainC(), cases)
    again = grade_case(replace(grading, files=drawn), submission, built, cases[0], Stopwatch())
    assert again.ran is not None
    kinds = {re.sub(r"[0-9a-z_]{8,}", "RANDOM", said.replace(".", "")) for said in (*places, again.ran.printed)}
    (kind,) = kinds
    assert "run-RANDOM" in kind and "drawn" not in kind and "usual" not in kind


def test_the_record_says_how_many_were_drawn_again(suite: Suite) -> None:
    cases = suite.select("all")
    assert drawn_sentence(cases[:1], cases).startswith("1 of 3 hidden testcases (t01) was also run on values drawn")
    assert drawn_sentence([], suite.select("public")) == ""


@pytest.mark.parametrize(
    ("show", "diagnosis", "reason"),
    [("diagnosis", True, "12 differ."), ("values", False, "12 differ."), ("verdict", False, "The output is wrong.")],
)
def test_a_student_reads_of_hidden_cases_what_the_instructor_allows(
    suite: Suite, show: str, diagnosis: bool, reason: str
) -> None:
    rules = HiddenInputs.model_validate({"show": show})
    t01, s01 = (facts(suite.cases[name], Verdict.WRONG_ANSWER, "12 differ.") for name in ("t01", "s01"))
    assert shows_diagnosis(rules, t01.case) is diagnosis
    assert record_of(t01, rules).reason == reason
    assert shows_diagnosis(rules, s01.case)
    assert record_of(s01, rules).reason == "12 differ."


DOUBTS = (
    Doubt("Its trace contains 6,474 lines that the tracer does not write"),
    Doubt("CUPTI refused the tracer", "6474 said 6474"),
)


def telling(case: Case, verdict: Verdict) -> Tested:
    """A test whose program has its input, 6474, in everything that it can choose."""
    reason = "" if verdict is Verdict.PASSED else "six474() failed: 6474."
    said = Judgement(verdict, Fault.STUDENT, reason, warnings=("The output is right, but six474() failed with 6474.",))
    ran = Ran(wall_s=1.6474, limit_s=9.0, cpu_s=1.6474, ending="exit code 6474", printed="6474", kernels=6474)
    why = Doubt("Its trace has a kernel that no GPU can run", "6474, 6474x1x1 threads per block")
    none = np.zeros(1, np.int64)
    errors = TensorErrors("O", Limit(1.0), 1, none, none, none, largest=6474.0)
    check = Check("values", "6474 differ.", 8, wrong=6474, errors=(errors,))
    return Tested(case, said, ran, check, Times(Refused(why), doubts=DOUBTS))


@pytest.mark.parametrize("verdict", [Verdict.PASSED, *sorted(STUDENT_VERDICTS), Verdict.GRADER_ERROR])
def test_where_only_the_verdict_is_shown_nothing_a_program_says_gets_around_it(suite: Suite, verdict: Verdict) -> None:
    rules = HiddenInputs(show="verdict")
    secret = record_of(telling(suite.cases["t01"], verdict), rules)
    if verdict is not Verdict.COMPILE_ERROR:  # the compiler saw no input
        assert "474" not in secret.model_dump_json()
    assert secret.flags == ("Its trace contains … lines that the tracer does not write.", "CUPTI refused the tracer.")
    assert secret.timing_refused == "Its trace has a kernel that no GPU can run."
    shown = record_of(telling(suite.cases["s01"], verdict), rules)
    assert shown.flags == tuple(f"{doubt}." for doubt in DOUBTS)
    assert (shown.output, shown.exit, shown.kernels, shown.max_error) == ("6474", "exit code 6474", 6474, 6474.0)


def test_of_many_long_warnings_twenty_short_ones_are_kept(suite: Suite) -> None:
    warnings = tuple(f"{number} {'x' * 4000}" for number in range(6000))
    test = Tested(suite.cases["s01"], Judgement(Verdict.PASSED, None, warnings=warnings), RAN)
    kept = record_of(test, HiddenInputs()).warnings
    assert len(kept) == 20 and all(len(warning) <= 300 for warning in kept)
    assert kept[-1] == "5,981 more of this kind."


def test_a_profile_of_a_secret_test_names_no_kernel(suite: Suite) -> None:
    said = {"name": "k6474", "launches": 6474, "profiled": 1, "gpu_ms": 1.0, "share": 1.0}
    made = {
        "test": "t01",
        "achieved": None,
        "reason": "k6474 was not profiled",
        "counted": ["k6474"],
        "kernels": [said],
    }
    profile = ProfileRecord.model_validate(made)
    assert "6474" not in disclosed_profile(profile, HiddenInputs(show="verdict"), suite.cases["t01"]).model_dump_json()
    assert disclosed_profile(profile, HiddenInputs(), suite.cases["t01"]) == profile
