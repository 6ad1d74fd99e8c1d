"""Computes totals, and keeps points entered by hand when a submission is graded again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext

from grader.base.errors import UsageError
from grader.base.verdict import Fault
from grader.records.record import MANUAL, PartRecord, Record, Scores, TestRecord

_CENT = Decimal("0.01")
_EXACT = Context(prec=700)
"""Enough digits for a product of any two floats."""


def sum_of(points: Iterable[float | None], penalty: float = 0.0) -> float:
    """The sum of the known points, minus the share `penalty`, rounded half up to two decimals. It is computed in
    decimals, since 92.35 x 0.9 in binary is slightly less than 83.115."""
    with localcontext(_EXACT):
        known = sum((Decimal(repr(each)) for each in points if each is not None), Decimal(0))
        kept = known * (1 - Decimal(repr(round(penalty, 9))))
        return float(kept.quantize(_CENT, ROUND_HALF_UP))


def total_of(parts: Sequence[PartRecord], tests: Sequence[TestRecord], *, practice: bool) -> float | None:
    """A record's total. None for practice, if an automatic part is not measured, or if a fault of the grader or the
    machine left a test without a verdict."""
    judged = all(test.fault not in (Fault.GRADER, Fault.MACHINE) for test in tests)
    complete = all(part.points is not None for part in parts if not part.is_manual)
    return sum_of(part.points for part in parts) if judged and complete and not practice else None


def enter(record: Record, given: Mapping[str, float], note: str = "") -> Record:
    """The record with the points `given` in its manual parts, and a total if nothing else is missing. Raises UsageError
    for a part that is not manual and for points out of range."""
    manual = {part.part: part for part in record.parts if part.is_manual}
    for name, points in given.items():
        if name not in manual:
            raise UsageError(
                f"{name} is not entered by hand in {record.assignment}; manual parts: {', '.join(manual) or 'none'}."
            )
        if not 0 <= points <= manual[name].max:
            raise UsageError(f"{name}: points must be from 0 to {manual[name].max:g}, found {points:g}.")
    day = datetime.now(UTC).date().isoformat()
    how = f"{MANUAL} on {day}" + (f": {note}" if note else "")
    parts = tuple(
        part.model_copy(update={"points": given[part.part], "how": how}) if part.part in given else part
        for part in record.parts
    )
    return _with_parts(record, parts)


def keep(old: Sequence[Record], new: Record) -> Record:
    """The new record with the manual points of an older record of the same submission and assignment."""
    for record in old:
        if (record.submission.id, record.assignment) == (new.submission.id, new.assignment):
            entered = {part.part: part for part in record.parts if part.is_manual and part.points is not None}
            parts = tuple(entered[part.part] if part.is_manual and part.part in entered else part for part in new.parts)
            return _with_parts(new, parts)
    return new


def _with_parts(record: Record, parts: tuple[PartRecord, ...]) -> Record:
    points = {part.part: part.points for part in parts}
    total = total_of(parts, record.tests, practice=record.practice)
    return record.model_copy(
        update={
            "parts": parts,
            "scores": Scores(total=total, max=record.scores.max, **points),
            "not_measured": tuple(f"{part.part}: {part.how}" for part in parts if part.points is None),
        }
    )
