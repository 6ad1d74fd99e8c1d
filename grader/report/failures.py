"""Groups failed tests by their cause, in the same way for every report of a record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grader.base.verdict import Fault, Verdict
from grader.findings import claimed, kind_of
from grader.grading.shape_split import deciding_number
from grader.records.record import TestRecord

_DIFFERS = re.compile(r"(?<![:\w])-?(?:0x[0-9a-f]+|\d[\d,.]*)")
"""Numbers that differ between tests with the same failure: sizes, threads. Numbers after a colon are line numbers,
which do not match."""
_DISTANCE = re.compile(r"\b(?:just|(?<![\d,])[\d,]+ bytes) (?=past )")
_NO_EVIDENCE = 100
_WHOSE = {Fault.GRADER: "not your fault: the grader's", Fault.MACHINE: "not your fault: the machine's"}


@dataclass(frozen=True)
class Cause:
    """A cause of failed tests. `known` is true if `sentence` explains the failure, and does not only describe it."""

    sentence: str
    tests: tuple[TestRecord, ...]
    known: bool

    @property
    def first(self) -> TestRecord:
        return self.tests[0]

    @property
    def names(self) -> str:
        return names_of([test.name for test in self.tests])

    @property
    def whose(self) -> str:
        """Words for the party at fault if it is not the student; else ''."""
        return _WHOSE.get(self.first.fault, "") if self.first.fault else ""


def names_of(names: Sequence[str]) -> str:
    """ "s01", "s01, s04", "s01 and 5 others"."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} and {len(names) - 1} others"


def alike(text: str) -> str:
    """`text` without the numbers that differ between tests, so that similar failures have the same text."""
    return _DIFFERS.sub("#", _DISTANCE.sub("", text))


def causes(tests: Iterable[TestRecord]) -> list[Cause]:
    """The causes of failed tests, the known ones first, by the evidence for them. A wrong answer without an explanation
    of its own is attributed to the first known cause, and every wrong answer to a race, which makes values random."""
    groups: dict[tuple[object, ...], list[TestRecord]] = {}
    for test in tests:
        if test.verdict is not Verdict.PASSED:
            said = alike(test.cause or test.reason)
            groups.setdefault((test.fault, bool(test.cause), said), []).append(test)
    ordered = sorted(
        groups.items(), key=lambda group: (group[0][0] is not Fault.STUDENT, not group[0][1], _evidence(group[1]))
    )
    found: list[Cause] = []
    for (fault, known, _), members in ordered:
        wrong = fault is Fault.STUDENT and members[0].verdict is Verdict.WRONG_ANSWER
        if wrong and found and found[0].known and (not known or _is_race(found[0].tests)):
            found[0] = Cause(found[0].sentence, (*found[0].tests, *members), known=True)
        else:
            sentence = members[0].cause or members[0].reason
            found.append(Cause(sentence, tuple(members), bool(known)))
    return found


def _evidence(tests: Sequence[TestRecord]) -> tuple[int, float]:
    """Where the best evidence for the cause of these tests stands among the others', the best first."""
    best = claimed([test.findings for test in tests])
    return (kind_of(best).order, -best.certainty) if best is not None else (_NO_EVIDENCE, 0)


def _is_race(tests: Sequence[TestRecord]) -> bool:
    best = claimed([test.findings for test in tests])
    return best is not None and kind_of(best).check == "race"


def split_by_shape(tests: Sequence[TestRecord]) -> str:
    """ "Every test of shape … x … x 32 fails, every one of shape … x … x 64 passes: …" if a single number of the shape
    decides which tests fail; else ''."""
    failed = [test.shape for test in tests if test.fault is Fault.STUDENT]
    decides = deciding_number(failed, [test.shape for test in tests if test.verdict is Verdict.PASSED])
    if decides is None:
        return ""
    place, *values = decides
    places = range(len(tests[0].shape))
    bad, good = (" x ".join(f"{value:g}" if at == place else "…" for at in places) for value in values)
    return (
        f"Every test of shape {bad} fails, and every one of shape {good} passes: what in the program depends on this "
        "number?"
    )


def consequence(test: TestRecord) -> str:
    """The part of a test's reason that follows its cause: which values are wrong, and by how much."""
    return test.reason.removeprefix(test.cause).strip() if test.cause else test.reason


def reasons(tests: Sequence[TestRecord]) -> dict[str, str]:
    """The sentence for each test in a list of tests. The first test with a cause states it in full; the others refer to
    that test and add their own consequence."""
    said: dict[str, str] = {}
    for cause in causes(tests):
        said[cause.first.name] = cause.first.reason
        for test in cause.tests[1:]:
            again = f"Same cause as {cause.first.name}." if cause.known or test.reason == cause.first.reason else ""
            rest = consequence(test) if test.reason != cause.first.reason else ""
            said[test.name] = " ".join(filter(None, (again, rest)))
    return said
