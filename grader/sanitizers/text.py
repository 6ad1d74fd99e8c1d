"""Renders sanitizer reports for students."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from grader.programs.build import handed_in_name
from grader.programs.trace import Diagnostic
from grader.sanitizers.cause import dim_text
from grader.sanitizers.findings import Report
from grader.sanitizers.triton_words import in_triton, is_python

_SHOWN = 5
_WIDTH = 100


def render(reports: Sequence[Report]) -> str:
    """Render reports for a student: the first few places that each tool found, with advice, and the number of
    errors."""
    lines = []
    for report in reports:
        if report.not_run:
            lines.append(f"{report.check}: not run: {report.not_run}.")
        elif not report.errors:
            lines.append(f"{report.check}: {'no error' if report.findings else 'nothing found'}.")
        else:
            lines.append(f"{report.check}: {report.errors:,} error{'s' if report.errors > 1 else ''}.")
        for finding in report.findings[:_SHOWN]:
            lines += [part for line in describe(finding.first, finding.times) for part in _wrapped(line)]
        more = len(report.findings) - _SHOWN
        if more > 0:
            lines.append(f"  and {more} more places.")
    return "\n".join(lines)


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(
        line.strip(), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


def describe(diagnostic: Diagnostic, times: int = 1) -> list[str]:
    """Describe one finding in up to three lines: what, where, what to do."""
    where = [f"{handed_in_name(diagnostic.file)}:{diagnostic.line}"] if diagnostic.file else []
    where += [f"in {diagnostic.kernel}"] if diagnostic.kernel else []
    where += [f"block {dim_text(diagnostic.block)}"] if diagnostic.block else []
    where += [f"thread {dim_text(diagnostic.thread)}"] if diagnostic.thread else []
    seen = f" (seen {times:,} times at this place)" if times > 1 else ""
    kind = "note: " if diagnostic.severity == "note" else ""
    lines = [f"  {kind}{diagnostic.message}{seen}"]
    if where:
        lines.append(f"    at {', '.join(where)}")
    if diagnostic.advice:
        lines.append(f"    {diagnostic.advice}")
    return [in_triton(line) for line in lines] if is_python(diagnostic.file) else lines
