"""Renders sanitizer reports for students."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from grader.findings import Finding, advice, detail, dim_text, fact, kind_of, short_kernel
from grader.sanitizers.tool_report import Report

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


def describe(finding: Finding, times: int = 1) -> list[str]:
    """Describe one finding in up to four lines: what, where, in which memory, what to do."""
    where = [str(finding.place)] if finding.place else []
    where += [f"in {short_kernel(finding.kernel)}"] if finding.kernel else []
    where += [f"block {dim_text(finding.block)}"] if finding.block else []
    where += [f"thread {dim_text(finding.thread)}"] if finding.thread else []
    seen = f" (seen {times:,} times at this place)" if times > 1 else ""
    kind = "note: " if kind_of(finding).severity == "note" else ""
    lines = [f"  {kind}{fact(finding)}{seen}"]
    if where:
        lines.append(f"    at {', '.join(where)}")
    lines += [f"    {more}" for more in (detail(finding), advice(finding)) if more]
    return lines
