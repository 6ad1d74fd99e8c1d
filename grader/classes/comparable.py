"""Whether the results of a class compare: were all graded under the same rules, on the same testcases and machines?

Grading a class again takes hours and can be interrupted; a few students can be graded again alone. Until all are,
points of two kinds stand side by side, each right by itself. That is told, with who stands where.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from grader.base.verdict import Verdict
from grader.classes.final_points import Line, students_only
from grader.records.record import Record

RULES_SHOWN = 12
"""Characters of the rules' SHA-256 that people are shown."""

_MOST_NAMED = 30
"""More students than these are not named when they are the largest group: they are all that are not named elsewhere."""


def rules_of(record: Record) -> str:
    """The rules that a record was graded under, as people are shown them."""
    return record.assignment_sha256[:RULES_SHOWN]


def mixed(lines: Sequence[Line], rules_now: str = "") -> list[str]:
    """What keeps the points of `lines` from being compared, in sentences that name the students; none when all is
    alike. `rules_now` is the SHA-256 of the assignment's rules, '' where it is not known."""
    students = students_only(lines)
    now = rules_now[:RULES_SHOWN]
    notes = []
    if groups := _groups(students, rules_of, beside=now):
        told = [f"{name}{' (the current rules)' if name == now else ''}: {who}" for name, who in groups]
        then = "; the same `grader grade` command brings all under the current rules" if now else ""
        notes.append(
            f"Points were given under different rules and do not compare{then}. Rules {'; rules '.join(told)}."
        )
    for what, read in (("GPUs", _gpu), ("processors, which speedups are over", _processor)):
        if groups := _groups(students, read):
            told = [f"{name}: {who}" for name, who in groups]
            notes.append(
                f"Times were taken on different {what}, and points for them do not compare. {'; '.join(told)}."
            )
    if strange := [told for line in students for told in _strange_points(line)]:
        notes.append(f"Points entered by hand do not fit the rules: {', '.join(strange)}.")
    if odd := _on_other_inputs(students):
        told = [f"{student} ({', '.join(tests)})" for student, tests in odd.items()]
        notes.append(f"Some were graded on other inputs than most, since testcases were changed: {', '.join(told)}.")
    return notes


def _groups(lines: Sequence[Line], read: Callable[[Record], str | None], *, beside: str = "") -> list[tuple[str, str]]:
    """(what, who) by what `read` says of a record, the most frequent first; none where there is one kind. `beside`
    counts as a kind though nobody has it."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        if (found := read(line.attempt.record)) is not None:
            groups.setdefault(found, []).append(line.attempt.student.id)
    if len({*groups, beside} - {""}) < 2 or not groups:
        return []
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [
        (what, f"{len(who)} ({'all others' if not place and len(who) > _MOST_NAMED else ', '.join(sorted(who))})")
        for place, (what, who) in enumerate(ordered)
    ]


def _gpu(record: Record) -> str | None:
    return record.engine.device if any(test.gpu_ms is not None for test in record.tests) else None


def _processor(record: Record) -> str | None:
    return next((test.baseline.cpu for test in record.tests if test.baseline is not None), None)


def _strange_points(line: Line) -> list[str]:
    """Points that were entered under other rules: of a part that is worth less now, or is there no more."""
    student = line.attempt.student.id
    parts = ((part.part, line.parts[part.part], part.max) for part in line.attempt.record.parts)
    above = [f"{student} has {got:g} of {most:g} for {part}" for part, got, most in parts if got and got > most]
    return above + [f"{student} has some for {part}, which is no part any more" for part in line.unused]


def _on_other_inputs(lines: Sequence[Line]) -> dict[str, list[str]]:
    """Tests by student whose input was not what most had. Only of passed ones: a test that failed on values drawn for
    one grading has their input in its record."""
    inputs: dict[str, Counter[str]] = {}
    passed = [
        (line.attempt.student.id, test.name, test.input_digest)
        for line in lines
        for test in line.attempt.record.tests
        if test.verdict is Verdict.PASSED and test.input_digest is not None
    ]
    for _, name, digest in passed:
        inputs.setdefault(name, Counter())[digest] += 1
    usual = {name: min(found, key=lambda digest: (-found[digest], digest)) for name, found in inputs.items()}
    odd: dict[str, list[str]] = {}
    for student, name, digest in passed:
        if digest != usual[name]:
            odd.setdefault(student, []).append(name)
    return odd
