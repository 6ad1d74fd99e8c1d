"""What a student reads of a run's findings: '' if none can be a cause."""

from collections.abc import Iterable

from grader.findings import Finding
from grader.sanitizers import Files, likeliest, said_of


def cause_of(findings: Iterable[Finding], files: Files = ()) -> str:
    return said_of(found, files) if (found := likeliest(findings)) is not None else ""
