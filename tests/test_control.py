"""A fault is the grader's or the machine's only if the grader's own control program fails too."""

from pathlib import Path

import pytest

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.progress import Progress
from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check
from grader.commands import submissions
from grader.commands.choice import Choice
from grader.commands.submissions import grade_paths
from grader.findings import Finding
from grader.grading.judgement import judge
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.programs import control
from grader.programs.build import Build
from grader.programs.engine import plan_program, select_engine
from grader.programs.run import Run
from grader.programs.submission import Submission
from grader.programs.trace import Trace
from grader.records.record import Record, read_records
from grader.sandbox import Outcome

ENGINE = select_engine("emulator", "sm_80")


def tried(*errors: Exception) -> str:
    """What comes of a step that raises these errors, one in each try."""
    left, blame = list(errors), control.Blame(ENGINE, python=False)
    for _ in range(control.TRIES):
        with blame:
            if left:
                raise left.pop(0)
            return "done"
    return blame.caused


@pytest.mark.parametrize("error", [GraderFault("odd C"), MachineFault("no process"), RecursionError("deep")])
def test_a_fault_without_a_witness_is_the_submissions(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "problem", lambda engine, python: "")
    assert tried(error) == "done" and str(error) in tried(error, error)


def test_a_fault_with_a_witness_stays_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "problem", lambda engine, python: "the disk is full")
    with pytest.raises(MachineFault):
        tried(MachineFault("the disk is full"))


def test_a_users_error_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "problem", lambda engine, python: pytest.fail("asked the control program"))
    with pytest.raises(UsageError):
        tried(UsageError("no such file"))


def test_the_control_program_runs_on_this_machine() -> None:
    assert control.problem(ENGINE) == ""


def test_without_triton_no_python_program_is_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan_program, "triton_version", lambda: "")
    with pytest.raises(MachineFault, match="need Triton, which is not installed here"):
        grade_paths([Path("reference/softmax/online.py")], Choice("softmax", "s01", "emulator"))


def unlinked(name: str) -> str:
    return f'extern "C" int {name}();\n__global__ void k() {{}}\nint main() {{ return {name}(); }}\n'


def test_what_the_emulator_lacks_and_what_nobody_defines_is_told_to_the_student(tmp_path: Path) -> None:
    """And one submission that cannot be read or built does not keep the next from being graded."""
    sources = {"a": unlinked("cudaNotAFunction"), "b": "", "c": unlinked("nothing")}
    for name, text in sources.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "hw4.cu").write_text(text)
    paths = [tmp_path / name / "hw4.cu" for name in sources]
    records = grade_paths(paths, Choice("hw4", "s01", "emulator"))
    tests = [record.tests[0] for record in records]
    assert [(test.verdict, test.fault) for test in tests] == [(Verdict.COMPILE_ERROR, Fault.STUDENT)] * 3
    assert "cudaNotAFunction" in tests[0].reason and "is empty" in tests[1].reason and "nothing" in tests[2].reason


@pytest.mark.parametrize(
    ("error", "fault"),
    [(UsageError("odd"), Fault.MACHINE), (MachineFault("gone"), Fault.MACHINE), (GraderFault("bug"), Fault.GRADER)],
)
def test_what_ends_one_submission_ends_no_other(
    error: Exception, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [tmp_path / name / "hw4.cu" for name in ("a", "b")]
    for path in paths:
        path.parent.mkdir()
        path.write_text(unlinked("nothing"))

    def first_fails(grading: Grading, submission: Submission, progress: Progress, built: Build | None = None) -> Record:
        if submission.id == "a" and built is None:
            raise error
        return grade(grading, submission, progress, built)

    monkeypatch.setattr(submissions, "grade", first_fails)
    first, second = grade_paths(paths, Choice("hw4", "s01", "emulator"), json=tmp_path / "all.json")
    assert (first.tests[0].fault, second.tests[0].fault) == (fault, Fault.STUDENT)
    assert first.infrastructure_failed and str(error) in first.tests[0].reason
    assert len(read_records(tmp_path / "all.json")) == 2
    with pytest.raises(type(error)):
        grade_paths(paths[:1], Choice("hw4", "s01", "emulator"))


@pytest.mark.parametrize(("fails", "fault"), [(True, Fault.GRADER), (False, Fault.STUDENT)])
def test_a_forged_crash_of_the_emulator_is_the_students(
    fails: bool, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "problem", lambda engine: "it is broken" * fails)
    said = Finding(kind="emulator_failed", words={"signal": "SIGSEGV", "launched": "k()"})
    trace = Trace(engine="emulator", findings=(said,))
    run = Run(Outcome(None, "SIGSEGV", "", 0.1, 0.1, 1, "", ""), Path("output"), trace, "")
    check = Check("missing", "There is no output.", 4)
    judged = judge(run, check, limit="the limit", engine=ENGINE)
    assert judged.fault is fault and judged.reason.startswith("The emulator itself failed")


def test_nothing_is_said_about_host_code_that_is_the_graders_own() -> None:
    trace = Trace(engine="emulator", findings=(Finding(kind="host_crash", words={"address": "0x10"}),))
    check = Check("missing", "There is no output.", 4)
    for replayed in (False, True):
        run = Run(Outcome(None, "SIGSEGV", "", 0.1, 0.1, 1, "", ""), Path("output"), trace, "", replayed=replayed)
        judged = judge(run, check, limit="the limit")
        assert ("malloc" in judged.reason, len(judged.findings)) == (not replayed, not replayed)
    said = "softmax.py:9: launch: the kernel takes 2 arguments of 8, 4 bytes; the launch passes 0 arguments"
    run = Run(Outcome(1, None, "", 0.1, 0.1, 1, "", f"{said}\n"), Path("output"), trace, "", replayed=True)
    assert judge(run, check, limit="the limit").reason == f"It stopped before the end: {said}"
