"""The likeliest cause among a run's findings, as the first sentence of a failed test's report: where, what, and what to
do, without consequences."""

from __future__ import annotations

from collections.abc import Iterable

from grader.findings import Finding, claimed, kind_of, sentence
from grader.sanitizers.explained import Files, explained, line_in


def likeliest(findings: Iterable[Finding]) -> Finding | None:
    """The finding that is the likeliest cause; None if none can be one."""
    return claimed([[found for found in findings if found.file or kind_of(found).check != "api"]])


def said_of(finding: Finding, files: Files = ()) -> str:
    """Describe one finding for a student, with what the source explains of it."""
    return sentence(explained([finding], files)[0], line_in(files))
