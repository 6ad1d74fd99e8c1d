"""A program that never ends costs two time limits, not one for each test."""

from pathlib import Path

from grader.base.progress import Progress
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.testcase import load_suite
from grader.grading.one_test import time_limits
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.programs.submission import read_submission
from grader.records.record import Record
from tests.support.batch_engine import PlainC
from tests.support.sequential import right_program

ENDLESS = "int main() { for (;;); }"
MAIN = "int main(int argc, char **argv)\n{\n"
LARGE = """    FILE *sized = fopen(argv[1], "rb");
    fseek(sized, 0, SEEK_END);
    while (ftell(sized) > 400000) {
    }
"""
SLOW_FOR_THE_LARGE = right_program().replace(MAIN, MAIN + LARGE)


def graded(source: str, tmp_path: Path, *, quick: bool = False) -> Record:
    rules = load_assignment("hw4")
    limits = rules.limits.model_copy(update={"emulator_wall_s": 0.5})
    rules = rules.model_copy(update={"limits": limits, "rubric": rules.rubric[:1]})
    suite, files = load_suite(rules.testcases_file), TestcaseFiles(tmp_path / "files")
    cases = suite.select("s01..s04")
    for case in cases:
        generate(case, files, suite.seed(case))
    (tmp_path / "alice").mkdir()
    (tmp_path / "alice/hw4.cu").write_text(source)
    setup = Grading(rules, suite, files, cases, PlainC(), quick=quick)
    return grade(setup, read_submission(tmp_path / "alice", rules), Progress())


def test_a_grading_tries_the_smallest_test_and_then_gives_up(tmp_path: Path) -> None:
    record = graded(ENDLESS, tmp_path)
    ran = [test.name for test in record.tests if test.wall_s is not None]
    assert "s01" in ran and len(ran) <= 2
    assert all((test.verdict, test.fault) == ("time_limit", "student") for test in record.tests)
    left = next(test for test in record.tests if test.wall_s is None)
    assert left.reason.startswith("Not run: ") and "s01" in left.reason and "not smaller" in left.reason
    assert record.parts[0].points == 0


def test_a_program_that_is_only_slow_runs_on_all_tests(tmp_path: Path) -> None:
    record = graded(SLOW_FOR_THE_LARGE, tmp_path)
    assert " ".join(test.verdict for test in record.tests) == "passed passed time_limit passed"
    assert all(test.wall_s is not None for test in record.tests)


def test_a_sample_has_less_processor_time_on_the_emulator(tmp_path: Path) -> None:
    suite = load_suite((rules := load_assignment("hw4")).testcases_file)
    grading = Grading(rules, suite, TestcaseFiles(tmp_path), (), PlainC())
    assert [time_limits(grading, suite.cases[name])[::2] for name in ("s01", "s06", "t01")] == [
        (60, 10),
        (60, 30),
        (60, None),
    ]


def test_a_check_stops_at_the_first(tmp_path: Path) -> None:
    verdicts = [test.verdict for test in graded(ENDLESS, tmp_path, quick=True).tests]
    assert verdicts == ["time_limit", *["not_run"] * 3]
