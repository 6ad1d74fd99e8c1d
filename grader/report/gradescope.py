"""Renders a record as Gradescope's results.json.

The format is https://gradescope-autograders.readthedocs.io/en/latest/specs/ (Output Format). The rubric's parts are
entries with a score. Testcases follow with a status only, since the cost of a failed testcase depends on how many
failed. A part that was not measured has no score, and its text says so.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from statistics import geometric_mean
from typing import Any

from grader.base.verdict import Fault, Verdict
from grader.course.assignment import Assignment, Gradescope
from grader.records import measured_times as timing
from grader.records.points import sum_of
from grader.records.record import Record, TestRecord
from grader.report.failures import reasons

_OUTPUT_CHARACTERS = 8000
_NOT_JUDGED = (
    "Some tests could not be judged. That is not your fault: this run does not count, you keep the score of your last "
    "graded run, and the course staff see what failed."
)


def results(
    record: Record, assignment: Assignment, *, hidden: Callable[[str], bool], seconds: float, kept: float = 0.0
) -> dict[str, Any]:
    """The results.json of a graded submission. `hidden` says which testcases students do not see immediately; `seconds`
    is the duration of grading, `kept` the score of the student's last graded run.

    A fault of the machine costs neither a run nor the score before it, and the staff see what failed. Where runs are
    limited, the student sees no test, part or score of such a run: feedback that costs no run has no limit."""
    manual = {part.part for part in assignment.rubric if part.kind == "manual"}
    entries: list[dict[str, Any]] = []
    for number, part in enumerate((part for part in record.parts if part.part not in manual), start=1):
        entry: dict[str, Any] = {"name": part.part, "number": str(number), "output": part.how, "visibility": "visible"}
        if part.points is not None:
            entry |= {"score": part.points, "max_score": part.max}
        entries.append(entry)
    said: dict[str, str] = {}
    for secret in (False, True):  # a shown test never refers to a hidden one
        said |= reasons([test for test in record.tests if hidden(test.name) == secret])
    entries += [_test(test, said.get(test.name, ""), assignment.gradescope, hidden(test.name)) for test in record.tests]
    entries += _for_the_staff(record)
    failed = record.infrastructure_failed
    withheld = failed and assignment.gradescope.runs is not None
    if withheld:
        entries = [entry | {"visibility": "hidden"} for entry in entries]
    known = [part for part in record.parts if part.points is not None and part.part not in manual]
    score = sum_of(part.points for part in known)
    whole: dict[str, Any] = {
        "score": kept if withheld else max(score, kept) if failed else score,
        "execution_time": round(seconds),
        "output": _NOT_JUDGED if withheld else _summary(record),
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": entries,
        "extra_data": {
            "grader": record.grader.model_dump(),
            "sha256": record.submission.sha256,
            "graded": not failed,  # a fault of the machine does not use up a run
        },
    }
    if assignment.gradescope.leaderboard and not failed and (board := _leaderboard(record)):
        whole["leaderboard"] = board
    return whole


def _test(test: TestRecord, reason: str, rules: Gradescope, hidden: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{test.name} ({' x '.join(map(str, test.shape))})",
        "output": "\n".join([test.verdict.words, reason, *test.warnings]).strip()[:_OUTPUT_CHARACTERS],
        "output_format": "text",
        "visibility": rules.hidden_tests if hidden else "visible",
    }
    if test.fault in (None, Fault.STUDENT) and test.verdict is not Verdict.NOT_RUN:
        entry["status"] = "passed" if test.verdict is Verdict.PASSED else "failed"
    return entry


def _for_the_staff(record: Record) -> list[dict[str, Any]]:
    """An entry that only the staff see, on the faults of the machine; none without any."""
    faults = [test for test in record.tests if test.fault in (Fault.GRADER, Fault.MACHINE)]
    if not faults:
        return []
    lines = (f"{test.name} (fault of the {test.fault}): {test.reason}" for test in faults)
    said = "\n".join(["Not judged; run the autograder again when this is mended.", *lines])
    name = f"for the staff: tests that the machine failed: {len(faults)}"
    return [{"name": name, "output": said[:_OUTPUT_CHARACTERS], "output_format": "text", "visibility": "hidden"}]


def _summary(record: Record) -> str:
    passed = sum(test.verdict is Verdict.PASSED for test in record.tests)
    lines = [f"{passed} of {len(record.tests)} tests passed on {record.engine.device}."]
    if record.infrastructure_failed:
        lines.append(_NOT_JUDGED)
    if not record.build.ok:
        lines.append(record.tests[0].reason if record.tests else "It was not built.")
        lines.append(record.build.log[:_OUTPUT_CHARACTERS])
    if record.practice:
        lines.append("These are practice tests: the final grade comes from other tests.")
    missing = [what for what in record.not_measured if "entered by an assistant" not in what]
    lines += [f"Not measured here: {what.replace(': not measured: ', ': ')}" for what in missing]
    lines += record.notes
    return "\n".join(lines)


def _leaderboard(record: Record) -> list[dict[str, Any]]:
    """The number of passed tests and, if every test passed and every repeated time may be ranked, the geometric-mean
    speedup over the tests whose runs were repeated."""
    passed = sum(test.verdict is Verdict.PASSED for test in record.tests)
    board: list[dict[str, Any]] = [{"name": "tests passed", "value": passed, "order": "desc"}]
    repeated = [test for test in record.tests if test.timing is not None]
    known = [speedup.value for test in repeated if (speedup := timing.speedup(test)) is not None]
    confirmed = len(known) == len(repeated) and not any(map(timing.why_no_place, repeated))
    if known and confirmed and passed == len(record.tests):
        board.insert(0, {"name": "speedup", "value": round(geometric_mean(known), 1), "order": "desc"})
    return board


def message(text: str, *, score: float = 0.0, graded: bool = False) -> dict[str, Any]:
    """A results.json without a record: nothing to grade, too many runs, or the grader failed."""
    return {
        "score": score,
        "output": text[:_OUTPUT_CHARACTERS],
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [],
        "extra_data": {"graded": graded},
    }


def kept_score(metadata: dict[str, Any]) -> float:
    """The score of a student whose run fails through no fault of theirs: that of their last graded run, else 0.
    Otherwise a failure would cost the score, since Gradescope takes the score of the newest run."""
    return next((score for _, score in reversed(_graded(metadata))), 0.0)


def _graded(metadata: dict[str, Any]) -> list[tuple[datetime, float]]:
    """(time, score) of a student's earlier runs that were graded, oldest first."""
    return sorted(
        (datetime.fromisoformat(previous["submission_time"]), float(previous.get("score") or 0))
        for previous in metadata.get("previous_submissions") or []
        if ((previous.get("results") or {}).get("extra_data") or {}).get("graded", False)
    )


def refusal(metadata: dict[str, Any], rules: Gradescope) -> dict[str, Any] | None:
    """The results.json for a student who has used all graded runs of the window, with the score of the last one; None
    if this run may go ahead. `metadata` is submission_metadata.json; runs that were refused or failed do not count."""
    if rules.runs is None:
        return None
    now = datetime.fromisoformat(metadata["created_at"])
    earlier = [(time, score) for time, score in _graded(metadata) if now - time < timedelta(hours=rules.window_hours)]
    if len(earlier) < rules.runs:
        return None
    again = earlier[-rules.runs][0] + timedelta(hours=rules.window_hours)
    return message(
        f"This submission was not graded: {rules.runs} runs within {rules.window_hours:g} hours are allowed, and you "
        f"had {len(earlier)}. You keep the score of the last run. You can submit again from {again:%Y-%m-%d %H:%M %Z}.",
        score=earlier[-1][1],
    )
