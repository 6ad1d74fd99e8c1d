"""Writes records to files: an HTML page, JUnit XML, SARIF."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from grader.base.attempted import Failed, attempted
from grader.base.errors import GraderFault, MachineFault
from grader.base.paths import shown
from grader.records.record import Record
from grader.report import junit as junit_report
from grader.report import sarif as sarif_report


def _page(records: Sequence[Record]) -> str:
    from grader.site import report_page

    return report_page(records)


def write_reports(
    records: Sequence[Record], html: Path | None = None, junit: Path | None = None, sarif: Path | None = None
) -> None:
    """Write records as one self-contained page, as JUnit XML and as SARIF, each only if its path is given. Raises
    GraderFault, after everything is written, if a record could not be rendered: it names those that are missing."""
    reports = ((html, _page, "page"), (junit, junit_report.render, "JUnit file"))
    missing = ""
    for path, render, what in (*reports, (sarif, sarif_report.render, "SARIF file")):
        if path is not None:
            text, left_out = rendered(records, render)
            write(path, text, what)
            missing = missing or left_out
    if missing:
        raise GraderFault(missing)


def rendered(records: Sequence[Record], render: Callable[[Sequence[Record]], str]) -> tuple[str, str]:
    """What `render` makes of records, and a sentence on those that it fails on, which are left out."""
    whole = attempted(render, records)
    if not isinstance(whole, Failed):
        return whole, ""
    each = [(record, attempted(render, [record])) for record in records]
    failed = {record.submission.id: made.problem for record, made in each if isinstance(made, Failed)}
    said = f"Left out of the report: {', '.join(failed)}. {next(iter(failed.values()), whole.problem)}"
    return render([record for record, made in each if not isinstance(made, Failed)]), said


def write(path: Path, text: str, what: str) -> None:
    """Write `text` to `path`. Raises MachineFault, whose message calls the file `what`."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineFault(f"The {what} could not be written to {shown(path)}: {error.strerror}.") from error
