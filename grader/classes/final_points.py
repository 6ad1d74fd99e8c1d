"""Computes final points from records and from assistants' entries: which attempt counts, manual parts, lateness.

This is the only place where points are combined after grading. A record's points never change: the store keeps lateness
and manual points next to it, so a mistake in either can be corrected without grading again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grader.classes.batch.policy import Which
from grader.records.points import sum_of
from grader.store import Attempt, Store
from grader.store.rows import Points, Student

MODEL_PREFIX = "model:"
"""The ids of model solutions begin with this; they are shown as such and get no grade."""


@dataclass(frozen=True)
class Line:
    """A student's standing. `parts` are the points of all parts, manual ones included; None means not measured, or not
    entered.

    `points` is the sum of the known points, after the penalty. `total` is the same if no part is missing, else None;
    `missing` names the missing parts. `unused` are parts for which points were entered although the record's rules have
    no such part.
    """

    attempt: Attempt
    attempts: int
    parts: dict[str, float | None]
    comments: dict[str, str]
    points: float
    total: float | None
    max: float
    missing: tuple[str, ...]
    unused: tuple[str, ...] = ()

    @property
    def is_model(self) -> bool:
        return self.attempt.student.id.startswith(MODEL_PREFIX)


def gradebook(store: Store, assignment: str, which: Which = Which.LATEST, student: str | None = None) -> list[Line]:
    """One line per student, by id, for the attempt that counts; with `student`, only theirs."""
    entered = store.points(assignment)
    lines: dict[str, Line] = {}
    for attempt in store.attempts(assignment, student, last=which is Which.LATEST):
        whose = attempt.student.id
        line, before = standing(attempt, entered.get(whose, {})), lines.get(whose)
        if before is None or _reach(line) >= _reach(before):
            lines[whose] = line
    return list(lines.values())


def _reach(line: Line) -> tuple[bool, float]:
    """The key by which the best attempt is chosen. Practice never replaces a graded result. An attempt that could not
    be judged ranks by the most points that it can still reach, so that a fault of the machine cannot cost points
    unnoticed."""
    record = line.attempt.record
    open_points = [part.max for part in record.parts if line.parts[part.part] is None]
    judged = line.points if not record.infrastructure_failed else sum_of([line.points, *open_points])
    return not record.practice, judged


@dataclass(frozen=True)
class Absent:
    """A student of the class without a graded submission. `parts` are points that an assistant entered anyway.
    `waiting` is true if the store has a submission that is not graded yet."""

    student: Student
    parts: dict[str, float]
    comments: dict[str, str]
    waiting: bool

    @property
    def points(self) -> float | None:
        return sum_of(self.parts.values()) if self.parts else None


def absent(store: Store, assignment: str) -> list[Absent]:
    """The students of the class who are not in `gradebook`, by id."""
    entered = store.points(assignment)
    return [
        Absent(
            student,
            {part: entry.points for part, entry in entered.get(student.id, {}).items()},
            {part: entry.comment for part, entry in entered.get(student.id, {}).items() if entry.comment},
            waiting,
        )
        for student, waiting in store.without_result(assignment)
        if not student.id.startswith(MODEL_PREFIX)
    ]


def standing(attempt: Attempt, entered: Mapping[str, Points]) -> Line:
    """Compute the points of one attempt. `entered` are the student's points entered by hand, by part."""
    record = attempt.record
    parts = {part.part: entered[part.part].points if part.part in entered else part.points for part in record.parts}
    missing = tuple(name for name, points in parts.items() if points is None)
    points = sum_of(parts.values(), attempt.penalty)
    complete = not missing and not record.practice and not record.infrastructure_failed
    return Line(
        attempt=attempt,
        attempts=attempt.of,
        parts=parts,
        comments={name: entry.comment for name, entry in entered.items() if entry.comment},
        points=points,
        total=points if complete else None,
        max=record.scores.max,
        missing=missing,
        unused=tuple(sorted(set(entered) - set(parts))),
    )


def share_words(penalty: float) -> str:
    """A penalty for people to read, exact enough to compute with: 12.5%."""
    return f"{round(100 * penalty, 4):g}%"


def days_words(days: int) -> str:
    """1 day late, 2 days late."""
    return f"{days} day{'s' * (days != 1)} late"


def students_only(lines: Iterable[Line]) -> list[Line]:
    """The lines of students, without model solutions."""
    return [line for line in lines if not line.is_model]
