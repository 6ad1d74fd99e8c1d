"""Each cause is said once in every report; a test that fails of it takes a line."""

from grader.base.verdict import Fault, Verdict
from grader.course.assignment import Assignment
from grader.records.record import TestRecord
from grader.report import gradescope, junit, terminal
from grader.report.failures import causes, reasons
from grader.site.record_page import report_of
from tests.support.records import made_record, made_test

SCALE = "It matches attention without the scale. Look at hw4.cu:40: `const float scale = 1;`."


def wrong(name: str, cause: str = "", numbers: str = "8,002 of 8,192 values differ.") -> TestRecord:
    return made_test(name, Verdict.WRONG_ANSWER, cause=cause, reason=f"{cause} {numbers}".strip(), wrong_elements=8002)


TESTS = (
    made_test("s01"),
    wrong("s02", SCALE),
    wrong("s03", SCALE, "12 of 24 values differ."),
    wrong("s04", numbers="7 of 9 values differ."),
    made_test("s05", Verdict.NOT_RUN, fault=None, reason="Not run: s04 ran into its time limit."),
)


def test_tests_that_differ_in_sizes_threads_and_addresses_alone_fail_alike() -> None:
    said = "hw4.cu:{}: kernel k, thread ({},0,0) of block (0,0,0) wrote 4 bytes {} past the end of `o` ({} bytes)."
    crashed = [
        made_test("s01", Verdict.RUNTIME_ERROR, cause=said.format(5, 3, "just", 64)),
        made_test("s02", Verdict.RUNTIME_ERROR, cause=said.format(5, 9, "128 bytes", 4096)),
        made_test("s03", Verdict.RUNTIME_ERROR, cause=said.format(7, 3, "just", 64)),
    ]
    assert [[test.name for test in cause.tests] for cause in causes(crashed)] == [["s01", "s02"], ["s03"]]


def test_what_nothing_explains_fails_of_what_is_known_and_a_machine_s_fault_stays_apart() -> None:
    broken = made_test("s06", Verdict.GRADER_ERROR)
    known, not_run, machine = causes((*TESTS, broken)), TESTS[4], broken
    assert [[test.name for test in cause.tests] for cause in known] == [
        ["s02", "s03", "s04"], [not_run.name], [machine.name],
    ] or [[test.name for test in cause.tests] for cause in known] == [
        ["s02", "s03", "s04"], [machine.name], [not_run.name],
    ]  # fmt: skip
    assert next(cause for cause in known if cause.first is broken).whose == "not your fault: the machine's"


def test_every_report_says_the_cause_once(hw4: Assignment) -> None:
    record = made_record(tests=TESTS)
    graded = gradescope.results(record, hw4, hidden=lambda name: False, seconds=1)
    for text in (
        terminal.render_check(record),
        terminal.render(record),
        str([entry["output"] for entry in graded["tests"]]),
        str([(step.about, step.sentence, step.detail) for step in report_of(record).steps]),
    ):
        assert " ".join(text.split()).count("without the scale") == 1
    assert junit.render([record]).count("without the scale") == 2, "as its message and its text"
    assert reasons(record.tests)["s03"] == "Same cause as s02. 12 of 24 values differ."


def test_check_leads_with_the_cause_and_its_line_and_has_a_line_for_each_test() -> None:
    lines = terminal.render_check(made_record(tests=TESTS)).splitlines()
    assert "without the scale" in lines[2]
    assert lines[3] == "Look at hw4.cu:40: `const float scale = 1;`."
    for test in TESTS:
        assert sum(line.startswith(f"{test.name} ") for line in lines) == 1
    assert "s05: Not run: s04 ran into its time limit." in lines
    assert not any("GPU ms" in line for line in lines), "what was not measured of any test takes no column"


def test_a_shown_test_refers_to_no_hidden_one(hw4: Assignment) -> None:
    record = made_record(tests=[wrong("t01", SCALE), wrong("s02", SCALE)])
    said = gradescope.results(record, hw4, hidden=lambda name: name == "t01", seconds=1)
    outputs = {entry["name"][:3]: entry["output"] for entry in said["tests"]}
    assert SCALE in outputs["s02"] and "t01" not in outputs["s02"]


def test_a_number_of_the_shape_that_decides_what_fails_leads() -> None:
    shapes = ((2, 128, 32), (2, 256, 64), (4, 512, 32), (4, 128, 64))
    tests = [
        (wrong if shape[2] == 32 else made_test)(f"s{number}").model_copy(update={"shape": shape})
        for number, shape in enumerate(shapes)
    ]
    lead = terminal.render_check(made_record(tests=tests)).split("\n\n")[1]
    assert "Every test of shape … x … x 32 fails" in lead and "… x … x 64 passes" in lead
    assert "Every test" not in terminal.render_check(made_record(tests=tests[:2]))


def test_a_mistake_that_did_no_harm_leads_and_is_said_once() -> None:
    warning = "The output is right, but: hw4.cu:40: kernel k wrote 16 bytes past the end of the thread's local arrays."
    tests = [made_test(name, warnings=(warning.replace("16", size),)) for name, size in (("s01", "16"), ("s02", "4"))]
    text = terminal.render_check(made_record(tests=tests))
    assert "It passes, but: hw4.cu:40: kernel k wrote 16 bytes" in text
    assert text.count("hw4.cu:40") == 1 and text.endswith("All 2 tests passed.")


def test_what_does_not_compile_is_said_once_and_no_test_is_listed() -> None:
    log = 'hw4.cu(3): error: identifier "x" is undefined'
    reason = f"It does not compile: {log}"
    tests = [made_test(name, Verdict.COMPILE_ERROR, reason=reason, cause=reason) for name in ("s01", "s02")]
    record = made_record(tests=tests)
    record = record.model_copy(update={"build": record.build.model_copy(update={"ok": False, "log": log})})
    text = terminal.render_check(record)
    assert text.count("It does not compile") == 1 and text.endswith("None of the 2 tests was run.")
    assert "COMPILE ERROR" not in text
    assert Fault.STUDENT is tests[0].fault
