"""The terminal report: the table, one reason per failing test, the score with its parts."""

import io

import pytest

from grader.base.verdict import Fault, Verdict
from grader.records.record import PartRecord, Scores, TestRecord
from grader.report.colour import coloured, wants_colour
from grader.report.terminal import render, render_check, summary
from tests.support.records import made_record, made_test, practice_record


def failing(name: str, reason: str, fault: Fault = Fault.STUDENT) -> TestRecord:
    verdict = Verdict.WRONG_ANSWER if fault is Fault.STUDENT else Verdict.GRADER_ERROR
    return TestRecord(name=name, shape=(2, 128, 32), verdict=verdict, fault=fault, reason=reason)


def passing(name: str, **times: float) -> TestRecord:
    return TestRecord(name=name, shape=(2, 128, 32), verdict=Verdict.PASSED, fault=None, reason="", **times)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "id", "said"),
    [
        ("hw4.cu", "hw4", "hw4.cu · emulated sm_80"),
        ("alice/tiled.cu", "alice", "alice/tiled.cu · hw4 · emulated sm_80"),
        ("hw4.cu", "alice", "hw4.cu (alice) · emulated sm_80"),
    ],
)
def test_the_title_says_each_word_once(path: str, id: str, said: str) -> None:
    record = practice_record()
    submission = record.submission.model_copy(update={"path": path, "id": id})
    assert render(record.model_copy(update={"submission": submission})).splitlines()[0] == said


def test_tests_that_fail_alike_share_one_reason() -> None:
    tests = (*(failing(f"t{n:02}", "All values are zero.") for n in range(1, 5)), failing("t05", "NaN."))
    text = render(practice_record(tests=tests))
    assert text.count("All values are zero.") == 1
    assert "t01 and 3 others: All values are zero." in text
    assert "t05: NaN." in text


def test_a_fault_that_is_not_the_students_is_marked_so() -> None:
    text = render(practice_record(tests=(failing("t01", "The GPU is gone.", Fault.MACHINE),)))
    assert "not your fault: the machine's" in text


def test_what_was_not_measured_is_a_dash_and_never_a_zero() -> None:
    row = next(line for line in render(practice_record(tests=(passing("t01"),))).splitlines() if line.startswith("t01"))
    assert row.split() == ["t01", "2", "x", "128", "x", "32", "passed", "-", "-", "-", "-"]


def test_times_and_speedups_stand_in_the_table() -> None:
    tests = (passing("t23", gpu_ms=6.194, wall_s=0.44, speedup=6962.4, max_error=1.5e-5),)
    row = next(line for line in render(practice_record(tests=tests)).splitlines() if line.startswith("t23"))
    assert row.split()[7:] == ["1.5e-05", "0.44", "6.194", "6,962x"]


def test_a_final_run_ends_with_its_total_and_what_is_still_to_come() -> None:
    parts = (
        PartRecord(part="correctness", points=57, max=60, how="1 of 30 tests failed"),
        PartRecord(part="report", points=None, max=10, how="entered by an assistant"),
    )
    record = practice_record(practice=False, parts=parts, scores=Scores(total=57, max=70))
    assert render(record).endswith("Total: 57 of 60 (report not entered yet).")


def test_a_score_with_an_unmeasured_part_has_no_total() -> None:
    parts = (
        PartRecord(part="correctness", points=60, max=60, how="0 of 30 tests failed"),
        PartRecord(part="speedup", points=None, max=20, how="not measured: no trace"),
    )
    text = render(practice_record(practice=False, parts=parts, scores=Scores(total=None, max=80)))
    assert text.endswith("So far 60 of 60 points; no total, since a part of the score was not measured.")


def test_a_test_that_could_not_be_judged_is_no_passed_one_in_the_total() -> None:
    text = render(made_record(tests=[made_test("t01"), made_test("t02", Verdict.GRADER_ERROR)]))
    assert text.endswith("no total, since a test could not be judged, through no fault of yours.")


def test_a_compilers_long_log_is_cut_unless_asked_for() -> None:
    build = practice_record().build.model_copy(update={"ok": False, "log": "\n".join(f"error {n}" for n in range(50))})
    short, long = render(practice_record(build=build)), render(practice_record(build=build), verbose=True)
    assert "error 19" in short
    assert "error 20" not in short
    assert "30 more lines with --verbose" in short
    assert "error 49" in long


def test_the_log_of_a_compiler_is_not_shown_if_it_is_empty_or_a_test_says_it_all() -> None:
    for log in (
        "\n",
        "softmax.py:1: error: the file defines no function `solve`: write `def solve(x, y, rows, columns):`",
    ):
        build = practice_record().build.model_copy(update={"ok": False, "log": log})
        test = failing("s01", f"It does not compile: {log}").model_copy(update={"verdict": Verdict.COMPILE_ERROR})
        assert "The compiler said" not in render_check(practice_record(build=build, tests=(test,)))


def test_the_error_that_stopped_a_program_before_its_output_is_shown_without_verbose() -> None:
    def ended(name: str, verdict: Verdict) -> TestRecord:
        output = "\n".join([f"{name} line {n}" for n in range(50)]) + "\nNameError: name 'z' is not defined\n"
        return failing(name, "No file.").model_copy(update={"verdict": verdict, "output": output})

    text = render_check(practice_record(tests=(ended("t01", Verdict.NO_OUTPUT), ended("t02", Verdict.NO_OUTPUT))))
    assert "NameError: name 'z' is not defined" in text and "t01 line 49" in text
    assert "t01 line 0\n" in text and "t01 line 1\n" not in text and "t02 line" not in text
    assert "NameError" not in render_check(practice_record(tests=(ended("t01", Verdict.WRONG_ANSWER),)))


def test_check_closes_with_how_many_passed_and_where_to_start() -> None:
    record = practice_record(tests=(passing("s01"), failing("s02", "NaN."), failing("s03", "NaN.")))
    assert summary(record) == "1 of 3 tests passed; start with s02."
    assert render_check(record).endswith("1 of 3 tests passed; start with s02.")
    assert render_check(practice_record(tests=(passing("s01"),))).endswith("The test passed.")


def test_warnings_that_differ_in_an_address_are_said_once() -> None:
    tests = tuple(
        passing(f"t0{n}").model_copy(update={"warnings": (f"cudaFree(0x7f0{n}): it was freed before",)}) for n in (1, 2)
    )
    assert render_check(practice_record(tests=tests)).count("it was freed before") == 1


def test_a_wrong_file_name_is_noted_before_the_table() -> None:
    text = render_check(practice_record(notes=("hw5.cu is graded: rename it.",), tests=(passing("s01"),)))
    assert text.index("note: hw5.cu is graded: rename it.") < text.index("verdict")


def test_a_warning_that_many_tests_share_is_said_once() -> None:
    tests = tuple(passing(f"t0{n}").model_copy(update={"warnings": ("It ended with exit code 3.",)}) for n in (1, 2))
    text = render(practice_record(tests=tests))
    assert text.count("It ended with exit code 3.") == 1
    assert "warning (t01 and others)" in text


def test_what_a_terminal_would_obey_does_not_reach_it() -> None:
    log = "error: \x1b[2J\x1b[1;1HTotal: 100 of 100\r\u202e\udcff\tindented"
    record = practice_record(tests=(failing("t01", f"It says {log}"),))
    record = record.model_copy(update={"build": record.build.model_copy(update={"ok": False, "log": log})})
    for text in (render(record, verbose=True), render_check(record, verbose=True)):
        assert "Total: 100 of 100" in text
        assert all(character.isprintable() or character in "\n\t" for character in text)


def test_colours_stand_only_where_the_grader_wrote() -> None:
    text = render_check(practice_record(tests=(passing("s01"), failing("s02", "Look: PASSED at hw4.cu:12."))))
    painted = coloured(text)
    assert "\x1b[32mpassed\x1b[0m" in painted and "\x1b[31mWRONG ANSWER\x1b[0m" in painted
    assert "PASSED at \x1b[1mhw4.cu:12\x1b[0m" in painted, "words of a reason are not a verdict"
    assert "\x1b[31m1 of 2 tests passed\x1b[0m; start with s02." in painted


def test_only_a_terminal_gets_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert wants_colour(Terminal()) and not wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_colour(Terminal())
