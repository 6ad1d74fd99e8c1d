"""Computes how late a submission is, and the penalty. One function does it all, so every number is easy to check."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

from grader.classes.batch.roster import Student
from grader.course.assignment import Deadline


def due_of(deadline: Deadline | None, student: Student) -> datetime | None:
    """A student's own deadline, without the grace minutes; None if there is none."""
    due = student.due or (deadline.due if deadline is not None else None)
    return None if due is None else due + timedelta(days=student.extension_days)


def lateness(handed_in: datetime, deadline: Deadline | None, student: Student) -> tuple[int, float]:
    """Return (days late, penalty as a share of the points, 0 to 1).

    Every day begun after the student's deadline and the grace minutes counts as a day late; the free days cost nothing.
    """
    due = due_of(deadline, student)
    if due is None:
        return 0, 0.0
    grace = timedelta(minutes=deadline.grace_minutes if deadline is not None else 0)
    over = handed_in - due - grace
    if over <= timedelta(0):
        return 0, 0.0
    days = math.ceil(over / timedelta(days=1))
    if deadline is None:
        return days, 0.0
    if deadline.max_days is not None and days > deadline.max_days:
        return days, 1.0
    return days, round(min(1.0, deadline.penalty_per_day * max(0, days - deadline.free_days)), 9)  # 0.3, not 0.30…04
