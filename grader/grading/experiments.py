"""Experiments with a program whose answer is wrong, and the sentence with which its report then begins.

They change no verdict. What the source, the engine and a closer look have shown are findings by now; experiments add
others while nothing surer is known. The order of findings alone decides which is said.
"""

from __future__ import annotations

from grader.base.hints import hint
from grader.base.progress import Progress
from grader.base.stopwatch import Stopwatch
from grader.base.verdict import Verdict
from grader.findings import Finding, claimed, fact, kind_of, rank, sentence, surer
from grader.grading.closer_look import CloserLook, case_to_look_at
from grader.grading.hidden_testcases import shows_diagnosis
from grader.grading.probing import by_probes
from grader.grading.repairing import by_repairs
from grader.grading.session import Grading
from grader.grading.tested import Tested
from grader.programs.build import Build
from grader.programs.submission import Submission

SURE = 0.9
"""What was seen with this certainty is said although a repair is elsewhere: mistakes show where they have effects."""


def with_experiments(
    grading: Grading, closer: CloserLook, built: Build, tested: list[Tested], watch: Stopwatch, progress: Progress
) -> list[Tested]:
    """The tests; all with wrong values get what experiments show, since one mistake is likely to be behind them all."""
    by_case = dict(zip(grading.cases, tested, strict=True))
    shown = {c: t for c, t in by_case.items() if shows_diagnosis(grading.assignment.hidden_inputs, c)}
    wrong = [case for case, test in shown.items() if test.verdict is Verdict.WRONG_ANSWER]
    known = rank([shown[case].judgement.findings for case in wrong])
    if not wrong:
        return tested
    found = tuple[Finding, ...]()
    launching = [c for c in wrong if all(f.kind != "launch_not_reached" for f in shown[c].judgement.findings)] or wrong
    if not surer(known, than="scale_wrong"):
        with watch.stage("probes"):
            found = hint((), by_probes, grading, closer.submission, built, launching, known, progress)
    seen = rank([(*known, *found)])
    if grading.quick and not surer(seen, than="repaired"):
        case = case_to_look_at(dict.fromkeys(wrong, Verdict.WRONG_ANSWER))
        others = [other for other, test in shown.items() if other != case and (test.passed or other in wrong)]
        with watch.stage("repairs"):
            found += hint((), by_repairs, grading, closer.changing(), case, others, seen)
    cause = _said(claimed([(*seen, *found)]), claimed([seen]), closer.submission)
    for case in wrong:
        by_case[case] = by_case[case].with_cause(cause, found)
    return [by_case[case] for case in grading.cases]


def _said(first: Finding | None, seen: Finding | None, submission: Submission) -> str:
    """The sentence of the `first` finding; of a repair, after what was `seen`, but before the smallest input, which is
    long. '' if tests have their own."""
    if first is None or kind_of(first).check not in ("probe", "watch"):
        return ""
    if first.kind == "known_mistake" and not first.place:
        return ""
    cause = sentence(first, submission.line)
    if first.kind == "repaired" and seen is not None and kind_of(seen).check in ("watch", "probe", "source"):
        if first.place in (seen.place, seen.other):
            return f"{fact(seen)}. {cause}"
        both = [sentence(seen, submission.line), cause] if seen.certainty >= SURE else [cause]
        return " ".join(reversed(both) if seen.kind == "smallest_input" else both)
    return cause
