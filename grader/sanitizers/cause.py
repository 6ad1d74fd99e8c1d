"""The likeliest cause among a run's findings, as the first sentence of a failed test's report.

The sentence says where, what, and what to do, and leaves out consequences. A race between warps is an early suspect: a
kernel with such a race reads values that are not written yet, and its other findings may be consequences. A race within
one warp is the last suspect, because a GPU mostly runs the lanes of a warp in lockstep.
"""

from __future__ import annotations

from collections.abc import Iterable

from grader.findings import Finding, claimed, kind_of, sentence
from grader.sanitizers.explained import Files, explained, line_in

_AFTER_A_FAULT = 0.9
"""The certainty of a race that is found after a bad access: a kernel built with checks goes on with a wrong value."""


def likeliest(findings: Iterable[Finding]) -> Finding | None:
    """The finding that is the likeliest cause; None if none can be one."""
    suspects, faulty = list[Finding](), False
    for found in findings:
        late = faulty and found.kind == "race"
        suspects.append(found.model_copy(update={"certainty": _AFTER_A_FAULT}) if late else found)
        faulty |= kind_of(found).check == "memory" and found.kernel is not None and kind_of(found).severity == "error"
    return claimed([[found for found in suspects if found.file or kind_of(found).check != "api"]])


def cause_of(findings: Iterable[Finding], files: Files = ()) -> str:
    """The sentences that name the likeliest cause; '' if no finding can be a cause."""
    found = likeliest(findings)
    return said_of(found, files) if found is not None else ""


def said_of(finding: Finding, files: Files = ()) -> str:
    """Describe one finding for a student, with what the source explains of it."""
    return sentence(explained([finding], files)[0], line_in(files))
