"""What other systems read: Gradescope, JUnit, Canvas, Moodle, spreadsheets; each against its own rules."""

import csv
import io
import json
import re
import unittest
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from gradescope_utils.autograder_utils import decorators
from gradescope_utils.autograder_utils.json_test_runner import JSONTestRunner

from grader.base.errors import MachineFault, UsageError
from grader.base.verdict import Verdict
from grader.classes.final_points import Absent
from grader.classes.points_file import read_points
from grader.course.assignment import Assignment, Gradescope
from grader.gradescope import grade_there
from grader.records.record import Record
from grader.report import gradebook, gradescope, junit
from grader.store.rows import Student
from tests.support.gradescope import valid
from tests.support.records import line_of, made_record, made_test


def on_gradescope(record: Record, hw4: Assignment) -> dict[str, Any]:
    return valid(gradescope.results(record, hw4, hidden=lambda name: name.startswith("t"), seconds=12.4))


# ---- Gradescope ----


def test_parts_have_scores_and_testcases_a_status(hw4: Assignment) -> None:
    tests = [made_test("s01"), made_test("t01", Verdict.WRONG_ANSWER)]
    results = on_gradescope(made_record(tests=tests), hw4)
    assert results["score"] == 60
    assert results["execution_time"] == 12
    by_name = {entry["name"]: entry for entry in results["tests"]}
    assert by_name["correctness"]["score"] == by_name["correctness"]["max_score"] == 60
    assert "score" not in by_name["speedup"], "what was not measured has no score"
    assert "report" not in by_name, "an assistant grades it on Gradescope itself"
    assert by_name["s01 (2 x 128 x 32)"] == {
        "name": "s01 (2 x 128 x 32)", "output": "passed", "output_format": "text", "visibility": "visible",
        "status": "passed",
    }  # fmt: skip
    hidden = by_name["t01 (2 x 128 x 32)"]
    assert (hidden["visibility"], hidden["status"]) == ("after_published", "failed")


def test_a_machines_fault_is_no_students_failure(hw4: Assignment) -> None:
    results = on_gradescope(made_record(tests=[made_test("s01", Verdict.GRADER_ERROR)]), hw4)
    *_, test, staff = results["tests"]
    assert "status" not in test
    assert (staff["name"], staff["visibility"]) == ("for the staff: tests that the machine failed: 1", "hidden")
    assert "not your fault" in results["output"]


def test_the_leaderboard_has_the_speedup_only_when_all_was_timed(hw4: Assignment) -> None:
    assert on_gradescope(made_record(speedups=[10, 1000]), hw4)["leaderboard"][0] == {
        "name": "speedup", "value": 100.0, "order": "desc",
    }  # fmt: skip
    assert [entry["name"] for entry in on_gradescope(made_record(), hw4)["leaderboard"]] == ["tests passed"]


def _written_by_gradescope() -> dict[str, Any]:
    class Graded(unittest.TestCase):
        """A suite that uses all that gradescope-utils, Gradescope's own writer of results.json, can say."""

        @decorators.weight(2)
        @decorators.number("1.1")
        @decorators.tags("speed", "memory")
        @decorators.visibility("after_published")
        def test_passes(self) -> None:
            print("said")

        @decorators.partial_credit(10)
        @decorators.visibility("after_due_date")
        def test_in_part(self, set_score: Callable[[float], None]) -> None:
            set_score(4.2)

        @decorators.weight(1)
        @decorators.visibility("hidden")
        def test_fails(self) -> None:
            raise AssertionError("wrong")

        @decorators.leaderboard("speedup", "desc")
        def test_leads(self, set_leaderboard_value: Callable[[float], None]) -> None:
            set_leaderboard_value(42.5)

    out = io.StringIO()
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(Graded)
    JSONTestRunner(stream=out, visibility="visible", stdout_visibility="hidden").run(suite)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def test_the_schema_takes_what_gradescopes_own_writer_writes() -> None:
    theirs = valid(_written_by_gradescope())
    assert {entry.get("visibility") for entry in theirs["tests"]} == {"after_published", "after_due_date", "hidden"}
    assert theirs["leaderboard"] == [{"name": "speedup", "value": 42.5, "order": "desc"}]


def test_results_have_the_types_that_gradescopes_own_writer_gives_them(hw4: Assignment) -> None:
    ours, theirs = on_gradescope(made_record(speedups=[10, 1000]), hw4), _written_by_gradescope()
    numbers = (int, float)

    def kinds(entries: list[dict[str, Any]]) -> dict[str, str]:
        return {
            key: "number" if isinstance(value, numbers) else type(value).__name__
            for entry in entries
            for key, value in entry.items()
        }

    for name in ("tests", "leaderboard"):
        expected = kinds(theirs[name])
        for key, kind in kinds(ours[name]).items():
            assert key == "output_format" or expected[key] == kind, f"{name}: {key}"
    expected = kinds([theirs])
    for key in ("score", "visibility", "stdout_visibility", "tests", "leaderboard"):
        assert kinds([ours])[key] == expected[key], key


def metadata(*earlier: tuple[str, float, bool]) -> dict[str, Any]:
    previous = [
        {"submission_time": time, "score": score, "results": {"extra_data": {"graded": graded}}}
        for time, score, graded in earlier
    ]
    return {"created_at": "2026-11-21T12:00:00.000000-08:00", "previous_submissions": previous}


def test_too_many_runs_keep_the_last_score_and_say_when_to_come_back() -> None:
    rules = Gradescope(runs=2, window_hours=24)
    runs = metadata(("2026-11-21T10:00:00-08:00", 40.0, True), ("2026-11-21T08:00:00-08:00", 60.0, True))
    refused = gradescope.refusal(runs, rules)
    assert refused is not None
    valid(refused)
    assert refused["score"] == 40.0
    assert "submit again from 2026-11-22 08:00" in refused["output"]


def test_a_fault_of_the_machine_takes_neither_a_run_nor_the_score_before_it(tmp_path: Path, hw4: Assignment) -> None:
    faulted = on_gradescope(made_record(tests=[made_test("s01", Verdict.GRADER_ERROR)]), hw4)
    assert faulted["extra_data"]["graded"] is False
    assert on_gradescope(made_record(), hw4)["extra_data"]["graded"] is True
    runs = metadata(("2026-11-21T10:00:00-08:00", 83.5, True), ("2026-11-21T11:00:00-08:00", 0.0, False))
    (tmp_path / "submission_metadata.json").write_text(json.dumps(runs))

    def fails(path: Path) -> Record:
        raise MachineFault("The GPU is gone.")

    found = valid(grade_there(tmp_path, hw4, fails, lambda name: False))
    assert found["score"] == 83.5
    assert "not your fault" in found["output"]


def test_a_record_with_a_fault_of_the_machine_keeps_the_score_and_rations_what_it_shows(
    tmp_path: Path, hw4: Assignment
) -> None:
    """A student who provokes a fault of the machine would otherwise see tests and points as often as they like."""
    rules = hw4.model_copy(update={"gradescope": Gradescope(runs=2)})
    runs = metadata(("2026-11-21T10:00:00-08:00", 13.5, True))
    (tmp_path / "submission_metadata.json").write_text(json.dumps(runs))
    tests = [made_test("s01", Verdict.GRADER_ERROR), made_test("s02", Verdict.WRONG_ANSWER, reason="line 7")]
    found = valid(grade_there(tmp_path, rules, lambda path: made_record(tests=tests), lambda name: False))
    assert found["score"] == 13.5 and found["extra_data"]["graded"] is False
    assert {entry["visibility"] for entry in found["tests"]} == {"hidden"} and "line 7" in json.dumps(found["tests"])
    assert "not your fault" in found["output"] and "passed" not in found["output"] and "leaderboard" not in found


def test_no_control_character_leaves_for_gradescope(tmp_path: Path, hw4: Assignment) -> None:
    record = made_record("\x1b]0;owned\x07").model_copy(update={"notes": ("\x1b[2J",)})
    found = grade_there(tmp_path, hw4, lambda path: record, lambda name: False)
    assert "u001b" not in json.dumps(found)


def test_runs_that_are_long_past_refused_or_failed_do_not_count() -> None:
    runs = metadata(("2026-11-19T10:00:00-08:00", 40.0, True), ("2026-11-21T08:00:00-08:00", 60.0, False))
    assert gradescope.refusal(runs, Gradescope(runs=1)) is None
    assert gradescope.refusal(runs, Gradescope()) is None


@pytest.mark.parametrize(
    ("error", "score", "words"),
    [
        (UsageError("submission holds no .cu file."), 0, "submission holds no .cu file."),
        (MachineFault("The GPU is gone."), 0, "not your fault"),
        (RuntimeError("boom"), 0, "not your fault"),
    ],
)
def test_results_are_written_whatever_happens(
    tmp_path: Path, hw4: Assignment, error: Exception, score: float, words: str
) -> None:
    def fail(path: Path) -> Record:
        raise error

    (tmp_path / "submission_metadata.json").write_text("{ not json")
    grade_there(tmp_path, hw4, fail, lambda name: False)
    results = valid(json.loads((tmp_path / "results/results.json").read_text()))
    assert results["score"] == score
    assert words in results["output"]


# ---- JUnit ----


def test_junit_counts_add_up_and_faults_are_told_apart() -> None:
    tests = [
        made_test("s01"), made_test("s02", Verdict.WRONG_ANSWER), made_test("s03", Verdict.GRADER_ERROR),
        made_test("s04", Verdict.NOT_RUN, fault=None), made_test("s05", Verdict.TIME_LIMIT, output="\x1b[31m\x00red"),
    ]  # fmt: skip
    root = ElementTree.fromstring(junit.render([made_record("zoë <&>", tests=tests)]))
    (suite,) = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "2", "errors": "1", "skipped": "1"}
    assert suite.get("time") == "2.500"
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds["s01"] == []
    assert kinds["s02"] == ["failure"]
    assert kinds["s03"] == ["error"]
    assert kinds["s05"] == ["failure", "system-out"]
    assert suite.findtext("testcase[@name='s05']/system-out") == "�[31m�red"


def test_the_times_of_a_suites_cases_add_up_to_its_own() -> None:
    tests = [made_test(f"s{number}", wall_s=0.0006) for number in range(30)]
    (suite,) = ElementTree.fromstring(junit.render([made_record(tests=tests)]))
    shown = sum(Decimal(case.get("time") or "") for case in suite)
    assert Decimal(suite.get("time") or "") == shown


def test_junit_keeps_to_the_published_schema() -> None:
    """Element order and attribute types of the Jenkins xunit plugin's junit-10.xsd."""
    record = made_record(tests=[made_test("s01", output="hello"), made_test("s02", Verdict.WRONG_ANSWER, output="x")])
    root = ElementTree.fromstring(junit.render([record, record]))
    assert root.tag == "testsuites"
    for suite in root:
        assert set(suite.keys()) <= {"name", "tests", "failures", "errors", "skipped", "time", "timestamp", "hostname"}
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp") or "")
        for case in suite:
            assert set(case.keys()) == {"classname", "name", "time"}
            order = ["skipped", "error", "failure", "system-out", "system-err"]
            tags = [child.tag for child in case]
            assert tags == sorted(tags, key=order.index)


# ---- CSV ----


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_spreadsheet_has_parts_lateness_and_what_is_missing() -> None:
    (row,) = read(gradebook.render([line_of(made_record("alice"), penalty=0.1, report=8)], title="Attention"))
    assert row["id"] == "alice"
    assert (row["correctness"], row["speedup"], row["report"]) == ("60.0", "", "8")
    assert (row["points"], row["total"], row["missing"]) == ("61.2", "", "speedup occupancy")


def test_who_handed_in_nothing_stands_in_the_spreadsheet_without_points_and_in_no_import() -> None:
    silent = [Absent(Student("bob", "Bob B.", "", "B", "page"), {}, {}, waiting=False)]
    alice, bob = read(gradebook.render([line_of(made_record("alice"))], title="t", absent=silent))
    assert (bob["id"], bob["name"], bob["section"]) == ("bob", "Bob B.", "B")
    assert set(bob) == set(alice) and not any(bob[name] for name in bob if name not in ("id", "name", "section"))
    text = gradebook.render([line_of(made_record())], title="t", columns=("id", "attempts", "total"), absent=silent)
    assert text.splitlines()[-1] == "bob,0,"
    for form in ("canvas", "moodle"):
        assert "bob" not in gradebook.render([line_of(made_record("alice"))], form, title="t", absent=silent)


def test_points_for_who_handed_in_nothing_stand_with_the_others() -> None:
    bob = Absent(Student("bob", "Bob", "", "", "page"), {"report": 7.5}, {"report": "on paper"}, waiting=False)
    lines = [line_of(made_record("alice"), report=8)]
    _, row = read(gradebook.render(lines, title="t", absent=[bob]))
    assert (row["report"], row["correctness"], row["points"], row["total"]) == ("7.5", "", "7.5", "")
    for partial, grade in ((True, "7.5"), (False, "")):
        canvas = gradebook.render(lines, "canvas", title="t", absent=[bob], partial=partial)
        assert canvas.splitlines()[-1] == f"Bob,,,bob,,{grade}"
        _, moodle = read(gradebook.render(lines, "moodle", title="t", absent=[bob], partial=partial))
        assert moodle == {"ID number": "bob", "Full name": "Bob", "t": grade, "t feedback": "report: 7.5 (on paper)"}


def test_a_hand_in_that_is_not_graded_yet_is_no_missing_one() -> None:
    bob = Absent(Student("bob", "", "", "", "page"), {}, {}, waiting=True)
    _, row = read(gradebook.render([line_of(made_record("alice"))], title="t", absent=[bob]))
    assert (row["id"], row["missing"]) == ("bob", "the submission is not graded yet")


def test_rules_stand_in_the_spreadsheet_where_there_are_several() -> None:
    lines = [line_of(made_record("a")), line_of(made_record("b", assignment_sha256="1" * 64))]
    assert [row["rules"] for row in read(gradebook.render(lines, title="t"))] == ["0" * 12, "1" * 12]
    assert "rules" not in gradebook.render(lines[:1], title="t")


def test_columns_can_be_chosen_and_unknown_ones_are_told() -> None:
    text = gradebook.render([line_of(made_record())], title="t", columns=("report", "id", "passed"))
    assert text == "report,id,passed\n,alice,1\n"
    with pytest.raises(UsageError, match=r"no column 'grade'; there are id, name"):
        gradebook.render([line_of(made_record())], title="t", columns=("grade",))


def complete(name: str) -> Record:
    return made_record(name, parts=[{"part": "correctness", "points": 57, "max": 60, "how": ""}])


def test_canvas_finds_its_headers_its_points_possible_and_no_grade_where_there_is_none() -> None:
    lines = [line_of(complete("a")), line_of(made_record("b"))]
    rows = list(csv.reader(io.StringIO(gradebook.render(lines, "canvas", title="HW4"))))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "HW4"]
    assert rows[1][0].strip() == "Points Possible"
    assert rows[1][5] == "100.0"
    assert [(row[3], row[5]) for row in rows[2:]] == [("a", "57.0"), ("b", "")]


def test_moodle_gets_an_id_number_a_grade_and_feedback() -> None:
    (row,) = read(gradebook.render([line_of(made_record("a"), report=8)], "moodle", title="HW4", partial=True))
    assert row == {
        "ID number": "a",
        "Full name": "",
        "HW4": "68.0",
        "HW4 feedback": "correctness: 60; speedup: not measured; occupancy: not measured; report: 8",
    }


def test_the_penalty_that_is_told_is_the_one_that_was_taken() -> None:
    line = line_of(complete("a"), penalty=0.125)
    late = replace(line, attempt=replace(line.attempt, days_late=1))
    (row,) = read(gradebook.render([late], "moodle", title="t"))
    assert (row["t"], row["t feedback"]) == ("49.88", "correctness: 57; 1 day late, -12.5%")
    (row,) = read(gradebook.render([replace(late, attempt=replace(late.attempt, penalty=0.0))], "moodle", title="t"))
    assert row["t feedback"] == "correctness: 57; 1 day late"


def test_points_are_read_with_comments(tmp_path: Path, hw4: Assignment) -> None:
    path = tmp_path / "points.csv"
    path.write_text("id,report,report_comment\na,8.5,fine\nb,,\n")
    (entry,) = read_points(path, hw4, frozenset("ab"))
    assert (entry.student, entry.part, entry.points, entry.comment) == ("a", "report", 8.5, "fine")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,correctness\na,60\n", "expected a column id and one of report"),
        ("id,report\na,11\n", "line 2, report: 11 is not between 0 and 10; nothing was entered"),
        ("id,report\na,good\n", "'good' is not a number"),
        ("id,report\nc,1\n", "the store has no student 'c'"),
        ("id,report\na,1\na,2\n", "line 3: 'a' is already on line 2"),
    ],
)
def test_wrong_points_are_told_and_none_are_entered(tmp_path: Path, hw4: Assignment, text: str, message: str) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_points(path, hw4, frozenset("ab"))
