"""Checks whether the results of a class can be compared: all graded by the same rules, on the same testcases and the
same kind of machine.

Grading a class again takes hours and can be interrupted, or an assistant grades only a few students again. Until all
are graded, the store holds points under two sets of rules, each correct by itself. The notes made here say so and name
the students.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from grader.base.verdict import Verdict
from grader.classes.final_points import Line, students_only
from grader.records.record import Record

RULES_SHOWN = 12
"""The number of characters shown of the rules' SHA-256."""

_MAX_NAMED = 30
"""If the largest group has more students than this, a note calls it "all others" instead of listing their names."""


def rules_of(record: Record) -> str:
    """The start of the SHA-256 of the rules under which a record was graded, for people to read."""
    return record.assignment_sha256[:RULES_SHOWN]


def mixed(
    lines: Sequence[Line],
    rules_now: str = "",
    remedy: str = "repeat the `grader grade` command to grade everybody under the current rules",
) -> list[str]:
    """Sentences on why the points of `lines` cannot be compared, with the names of the students; none if they can.
    `rules_now` is the SHA-256 of the assignment's current rules, '' if it is not known."""
    students = students_only(lines)
    now = rules_now[:RULES_SHOWN]
    notes = []
    if groups := _groups(students, rules_of, expected=now):
        told = [f"{name}{' (the current rules)' if name == now else ''}: {who}" for name, who in groups]
        then = f"; {remedy}" if now else ""
        notes.append(
            f"Points were given under different rules and cannot be compared{then}. Rules {'; rules '.join(told)}."
        )
    if groups := _groups(students, lambda record: str(record.grader)):
        told = [f"{name}: {who}" for name, who in groups]
        notes.append(
            "Different versions of the grader made these results; `grader grade … --rerun older` makes them anew: "
            f"{'; '.join(told)}."
        )
    for what, read in (("Times were measured on different GPUs", _gpu), ("Baselines ran on different CPUs", _cpu)):
        if groups := _groups(students, read):
            told = [f"{name}: {who}" for name, who in groups]
            notes.append(f"{what}, so points for times cannot be compared: {'; '.join(told)}.")
    if apart := _baselines_apart(students):
        notes.append(apart)
    if strange := [words for line in students for words in _strange_points(line)]:
        notes.append(f"Points entered by hand do not fit the rules: {', '.join(strange)}.")
    if odd := _on_other_inputs(students):
        told = [f"{student} ({', '.join(tests)})" for student, tests in odd.items()]
        notes.append(
            "Some submissions were graded on other inputs than most of the class, because testcases changed: "
            f"{', '.join(told)}."
        )
    return notes


def _groups(
    lines: Sequence[Line], read: Callable[[Record], str | None], *, expected: str = ""
) -> list[tuple[str, str]]:
    """Group the lines by what `read` finds in their records, as (what, students), the largest group first. Return an
    empty list if all are of one kind; `expected` counts as a kind even if no record has it."""
    groups: dict[str, list[str]] = {}
    for line in lines:
        if (found := read(line.attempt.record)) is not None:
            groups.setdefault(found, []).append(line.attempt.student.id)
    if len({*groups, expected} - {""}) < 2 or not groups:
        return []
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
    return [
        (what, f"{len(who)} ({'all others' if not place and len(who) > _MAX_NAMED else ', '.join(sorted(who))})")
        for place, (what, who) in enumerate(ordered)
    ]


def _gpu(record: Record) -> str | None:
    return record.engine.device if any(test.gpu_ms is not None for test in record.tests) else None


def _cpu(record: Record) -> str | None:
    return next((test.baseline.cpu for test in record.tests if test.baseline is not None), None)


def _baselines_apart(lines: Sequence[Line]) -> str:
    """A sentence if the same test has baselines of several measurements on one kind of CPU, '' if not."""
    found: dict[tuple[str, str], dict[str, tuple[float, str]]] = {}
    for line in lines:
        for test in line.attempt.record.tests:
            if test.baseline is not None and test.baseline.id is not None:
                measured = found.setdefault((test.name, test.baseline.cpu), {})
                measured[test.baseline.id] = test.baseline.seconds, (test.baseline.date or "")[:10]
    several = [measured for measured in found.values() if len(measured) > 1]
    if not several:
        return ""
    furthest = max(several, key=lambda measured: max(measured.values())[0] / min(measured.values())[0])
    apart = max(furthest.values())[0] / min(furthest.values())[0] - 1
    told = ", ".join(f"{name} of {date}" for name, (_, date) in sorted(furthest.items(), key=lambda item: item[1][1]))
    return (
        f"Speedups are over baselines of several measurements ({told}), up to {apart:.1%} apart: `grader grade … "
        "--rerun ID` grades those with the earlier one again."
    )


def _strange_points(line: Line) -> list[str]:
    """Entered points that no longer fit the rules: more than the part is worth, or for a part that does not exist."""
    student = line.attempt.student.id
    parts = ((part.part, line.parts[part.part], part.max) for part in line.attempt.record.parts)
    above = [f"{student} has {got:g} of {most:g} for {part}" for part, got, most in parts if got and got > most]
    return above + [f"{student} has points for {part}, which is no longer a part" for part in line.unused]


def _on_other_inputs(lines: Sequence[Line]) -> dict[str, list[str]]:
    """For each student, the tests whose input differed from the input of most students. Only passed tests count: a test
    that failed on values drawn for one grading rightly has another digest in its record."""
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
