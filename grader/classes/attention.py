"""Lists the students who need a person's attention, and why, for `grade`, the gradebook and the gradebook's page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from grader.classes.batch.view import first_line
from grader.classes.final_points import Absent, Line, students_only
from grader.records.record import Record
from grader.store.rows import Student


class Why(StrEnum):
    """The reasons why a student needs attention, the most urgent first."""

    NOT_JUDGED = "not judged, through no fault of theirs: repeat the `grader grade` command"
    NOT_GRADED = "not graded yet"
    NOT_BUILT = "does not build"
    FLAGGED = "flagged"
    DOUBTFUL_TIMES = "doubtful times, which earn nothing"
    FAR_FROM_PREDICTED = "a time far from the predicted one, which is a hint and no proof"
    NOT_ON_ROSTER = "not on the roster"


@dataclass(frozen=True)
class Concern:
    """A student who needs attention. `detail` is one line, or '' if `why` says everything."""

    student: Student
    why: Why
    detail: str = ""

    def __str__(self) -> str:
        """ "alice (Alice Ahn): what the compiler said", without what is not known."""
        one = self.student
        return f"{one.id}{one.name and f' ({one.name})'}{self.detail and f': {self.detail}'}"


def needs_attention(
    lines: Sequence[Line], absent: Sequence[Absent] = (), unjudged: Mapping[str, str] | None = None
) -> list[Concern]:
    """Concerns by urgency, then by student's id. `unjudged` maps a student's id to the reason why the submission could
    not be judged; the points then come from an earlier grading."""
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
        yield Why.NOT_JUDGED, record.first_fault
    elif not record.build.ok:
        yield Why.NOT_BUILT, record.tests[0].reason
    if record.recheck is not None and not record.recheck.passed:
        yield Why.DOUBTFUL_TIMES, record.recheck.reason
    elif refused:
        yield Why.DOUBTFUL_TIMES, refused[0]
    elif record.flags:
        yield Why.FLAGGED, record.flags[0]


def by_reason(concerns: Sequence[Concern]) -> list[tuple[Why, list[Concern]]]:
    """Concerns grouped by their reason."""
    groups = [(why, [concern for concern in concerns if concern.why is why]) for why in Why]
    return [(why, group) for why, group in groups if group]


def render(concerns: Sequence[Concern]) -> str:
    """The list for a terminal; '' if no student needs attention."""
    lines = []
    for why, group in by_reason(concerns):
        between = "\n    " if any(concern.detail for concern in group) else ", "
        lines.append(f"  {why} ({len(group)}):{between.lstrip(',')}{between.join(map(str, group))}")
    return "\n".join(["Needs attention:", *lines]) if lines else ""
