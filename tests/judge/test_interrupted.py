"""A grading that a killed judge interrupted goes on at the test that ran."""

from dataclasses import replace
from pathlib import Path

from grader.base.progress import Progress
from grader.course.catalogue import generate
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.judge.ledger import Ledger, Stage, digest_of
from grader.programs.submission import read_submission
from grader.records.conditions import conditions_of
from grader.records.record import TestRecord
from grader.store import HandIn, compressed, open_store
from tests.support.records import made_record, made_test
from tests.support.sequential import right_program


class Watched(Progress):
    """Which tests ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def step(self, name: str, ended: str = "") -> None:
        if ended:
            self.ran.append(name)


SOURCES = (("hw4.cu", b"int main() {}"),)


def test_tests_that_ended_are_not_run_again_and_the_record_has_them_all(setup: Setup, tmp_path: Path) -> None:
    cases = setup.suite.select("s01..s03")
    for case in cases[1:]:
        generate(case, setup.files, setup.suite.seed(case), lambda done, total: None)
    (tmp_path / "hw4.cu").write_text(right_program())
    submission = read_submission(tmp_path / "hw4.cu", setup.assignment)
    kept: list[TestRecord] = []
    grading = Grading(**vars(replace(setup, cases=cases)), keep=kept.append)
    whole = grade(grading, submission, Progress())
    assert sorted(test.name for test in kept) == ["s01", "s02", "s03"]
    first = tuple(test for test in kept if test.name != "s02")

    again = grade(replace(grading, ended=first), submission, watched := Watched())
    assert watched.ran == ["s02"]
    assert [test.name for test in again.tests] == ["s01", "s02", "s03"]
    assert [test for test in again.tests if test.name != "s02"] == sorted(first, key=lambda test: test.name)
    assert (again.scores, again.parts, conditions_of(again)) == (whole.scores, whole.parts, conditions_of(whole))


def test_what_a_killed_judge_had_ended_is_there_after_the_restart_and_gone_with_the_result(tmp_path: Path) -> None:
    with open_store(tmp_path / "class.sqlite", create=True) as store:
        ledger = Ledger(store, "hw4")
        upload = ledger.receive("alice", compressed(SOURCES), digest_of(SOURCES))
        ledger.keep_test(upload, "these", made_test("s01"))  # too late: it does not run
        assert ledger.ended_tests(upload, "these") == ()
        assert ledger.claim(Stage.VERDICT) is not None
        ledger.keep_test(upload, "these", made_test("s02"))
    with open_store(tmp_path / "class.sqlite") as store:
        ledger = Ledger(store, "hw4")
        ledger.recover()
        again = ledger.claim(Stage.VERDICT)
        assert again is not None
        assert [test.name for test in ledger.ended_tests(again, "these")] == ["s02"]
        assert ledger.ended_tests(again, "other rules, testcases, engine or grader") == ()
        record = made_record("alice")
        hand_in = HandIn("hw4", "alice", record.submission.sha256, "hw4.cu", files=SOURCES)
        ledger.finish(again, hand_in, ("these", record), seconds=1.0)
        assert ledger.ended_tests(again, "these") == ()
