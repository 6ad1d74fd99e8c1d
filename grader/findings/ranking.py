"""Which finding comes first: the one with the best evidence over all tests, and causes before their consequences.

A finding's kind says where it stands: a contradiction (nothing was launched, O was never copied back) before a fault, a
fault before a step that computes a wrong value. Within these, the more certain
finding comes first, then the one that more tests show, then one with a line, then the one that was seen first. A race
that a test shows after a bad access is less certain: a kernel built with checks goes on with a wrong value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from grader.findings.finding import Finding, Place
from grader.findings.kinds import KINDS, kind_of

CLAIMED = 0.5
"""Below this certainty a finding is kept in the record, but nothing is claimed in a sentence."""
_AFTER_A_FAULT = 0.9
"""The certainty of a race after a bad access."""
_NAMED = "not_rescaled rescaled_wrongly weight_of_other_maximum old_sum_left_out terms_repeated scale_wrong other_input"


def rank(tests: Iterable[Sequence[Finding]]) -> tuple[Finding, ...]:
    """All findings of the `tests`, each mistake once, in its most certain form, the likeliest cause first."""
    best: dict[tuple[object, ...], Finding] = {}
    support: dict[tuple[object, ...], int] = {}
    for findings in map(_in_order, tests):
        for finding in findings:
            kept = best.get(finding.subject)
            best[finding.subject] = finding if kept is None or finding.certainty > kept.certainty else kept
        for subject in {finding.subject for finding in findings}:
            support[subject] = support.get(subject, 0) + 1
    found = without_echoes(best.values())

    def standing(each: Finding) -> tuple[float, ...]:
        return kind_of(each).order, -round(each.certainty, 2), -support[each.subject], each.place is None

    return tuple(sorted(found, key=standing))


def claimed(tests: Iterable[Sequence[Finding]]) -> Finding | None:
    """The finding that is the likeliest cause; None if none is certain enough, or can be a cause."""
    return next((f for f in rank(tests) if f.certainty >= CLAIMED and kind_of(f).is_cause), None)


def surer(known: Sequence[Finding], than: str) -> bool:
    """Whether an experiment that finds the kind `than` has nothing to add to what is known."""
    first = claimed([known])
    return first is not None and kind_of(first).order < KINDS[than].order


def names_its_line(known: Sequence[Finding]) -> bool:
    """Whether the likeliest cause is a step that names the mistake, in the line where it is mostly made."""
    first = claimed([known])
    return first is not None and first.kind in _NAMED.split() and first.place is not None


def _in_order(findings: Sequence[Finding]) -> list[Finding]:
    found, faulty = list[Finding](), False
    for each in findings:
        late = faulty and each.kind == "race"
        found.append(each.model_copy(update={"certainty": _AFTER_A_FAULT}) if late else each)
        faulty |= kind_of(each).check == "memory" and each.kernel is not None and kind_of(each).severity == "error"
    return found


def without_echoes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Leave out a race that a wider one explains: one within a warp if its two lines also race between warps or blocks,
    since the barrier for that race also separates the lanes; one within a block if blocks race for the same lines or
    the same array, since no barrier helps there."""
    found = tuple(findings)
    races = [each for each in found if each.kind in ("race", "race_of_writes", "race_in_warp")]
    blocks = [each for each in races if each.words.get("between") == "blocks"]
    wide = {_sides(each) for each in races if each.kind == "race"}
    arrays = {each.array or each.allocated for each in blocks} - {None}

    def echoes(race: Finding) -> bool:
        if race.kind == "race_in_warp" and _sides(race) in wide:
            return True
        same = (race.array or race.allocated) in arrays or any(_sides(race) == _sides(each) for each in blocks)
        return race.words.get("between") in ("lanes", "warps") and same

    return tuple(each for each in found if each not in races or not echoes(each))


def _sides(race: Finding) -> frozenset[Place | None]:
    return frozenset({race.place, race.other})
