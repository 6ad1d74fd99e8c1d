"""Whom of a class a person should look at, and why: the same list after `grade`, in the gradebook and on its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.classes.batch.desk import first_fault
from grader.classes.batch.view import first_line
from grader.classes.final_points import Absent, Line, students_only
from grader.records.record import Record
from grader.store.database import Student


class Why(StrEnum):
    """Why somebody needs attention, the most urgent first."""

    NOT_JUDGED = "not judged, through no fault of theirs: the same `grader grade` tries again"
    NOT_GRADED = "not graded yet"
    NOT_BUILT = "does not build"
    FLAGGED = "flagged"
    DOUBTFUL_TIMES = "doubtful times, which earn nothing"
    NOT_ON_ROSTER = "not on the roster"


@dataclass(frozen=True)
class Concern:
    """`detail` is one line; '' where `why` says it all."""

    student: Student
    why: Why
    detail: str = ""


def needs_attention(
    lines: Sequence[Line], absent: Sequence[Absent] = (), unjudged: Mapping[str, str] | None = None
) -> list[Concern]:
    """Concerns by urgency, then by student's id. `unjudged`: whom a run could not judge, with the reason, where their
    points are of an earlier one."""
    students = students_only(lines)
    rostered = any(line.attempt.student.enrolled for line in students) or any(one.student.enrolled for one in absent)
    found = [Concern(one.student, Why.NOT_GRADED) for one in absent if one.waiting]
    for line in students:
        student, record = line.attempt.student, line.attempt.record
        reasons = dict(_of_record(record))
        if fault := (unjudged or {}).get(student.id):
            reasons[Why.NOT_JUDGED] = fault
        found += [Concern(student, why, first_line(detail)) for why, detail in reasons.items()]
        if rostered and not student.enrolled:
            found.append(Concern(student, Why.NOT_ON_ROSTER))
    order = list(Why)
    return sorted(found, key=lambda concern: (order.index(concern.why), concern.student.id))


def _of_record(record: Record) -> Iterator[tuple[Why, str]]:
    refused = [test.timing_refused for test in record.tests if test.timing_refused]
    if record.infrastructure_failed:
        yield Why.NOT_JUDGED, first_fault(record)
    elif not record.build.ok:
        yield Why.NOT_BUILT, record.tests[0].reason
    if record.recheck is not None and not record.recheck.passed:
        yield Why.DOUBTFUL_TIMES, record.recheck.reason
    elif refused:
        yield Why.DOUBTFUL_TIMES, refused[0]
    elif record.flags:
        yield Why.FLAGGED, record.flags[0]


def by_reason(concerns: Sequence[Concern]) -> list[tuple[Why, list[Concern]]]:
    """The same, grouped by why."""
    groups = [(why, [concern for concern in concerns if concern.why is why]) for why in Why]
    return [(why, of_it) for why, of_it in groups if of_it]


def render(concerns: Sequence[Concern]) -> str:
    """The list for a terminal; '' where nobody needs attention."""
    lines = []
    for why, of_it in by_reason(concerns):
        if not any(concern.detail for concern in of_it):
            lines.append(f"  {why} ({len(of_it)}): {', '.join(concern.student.id for concern in of_it)}")
        else:
            lines.append(f"  {why} ({len(of_it)}):")
            lines += [f"    {concern.student.id}: {concern.detail}" for concern in of_it]
    return "\n".join(["Needs attention:", *lines]) if lines else ""
