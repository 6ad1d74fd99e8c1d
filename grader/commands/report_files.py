"""Writes records to files: an HTML page, JUnit XML, SARIF."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from grader.base.errors import MachineFault
from grader.base.paths import shown
from grader.records.record import Record
from grader.report import junit as junit_report
from grader.report import sarif as sarif_report
from grader.site import report_page


def write_reports(
    records: Sequence[Record], html: Path | None = None, junit: Path | None = None, sarif: Path | None = None
) -> None:
    """Write records as one self-contained page, as JUnit XML and as SARIF, each only if its path is given."""
    if html is not None:
        write(html, report_page(records), "page")
    if junit is not None:
        write(junit, junit_report.render(records), "JUnit file")
    if sarif is not None:
        write(sarif, sarif_report.render(records), "SARIF file")


def write(path: Path, text: str, what: str) -> None:
    """Write `text` to `path`. Raises MachineFault, whose message calls the file `what`."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise MachineFault(f"The {what} could not be written to {shown(path)}: {error.strerror}.") from error
