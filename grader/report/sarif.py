"""Renders findings as SARIF 2.1.0, which editors and code hosts show at the lines.

Standard: https://docs.oasis-open.org/sarif/sarif/v2.1.0/. One run for each record; a finding of several tests is one
result, with the tests in its properties. Findings without a place are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from grader.findings import CLAIMED, Finding, kind_of, sentence
from grader.records.record import Record

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render(records: Sequence[Record]) -> str:
    """The SARIF document."""
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(record) for record in records]}, indent=2)


def _run(record: Record) -> dict[str, object]:
    found = list(_places(record))
    rules = sorted({finding.kind for finding, _ in found})
    driver = {"name": "grader", "rules": [{"id": rule} for rule in rules]}
    return {"tool": {"driver": driver}, "results": [_result(finding, tests) for finding, tests in found]}


def _places(record: Record) -> Iterator[tuple[Finding, list[str]]]:
    """Each finding with a place that is certain enough to be claimed, and the names of its tests."""
    by_subject: dict[object, tuple[Finding, list[str]]] = {}
    for test in record.tests:
        for finding in test.findings:
            if finding.place is not None and finding.certainty >= CLAIMED:
                by_subject.setdefault(finding.subject, (finding, []))[1].append(test.name)
    yield from by_subject.values()


def _result(finding: Finding, tests: list[str]) -> dict[str, object]:
    related = [place for place in (finding.other, finding.allocated) if place is not None]
    result: dict[str, object] = {
        "ruleId": finding.kind,
        "level": kind_of(finding).severity,
        "message": {"text": sentence(finding)},
        "locations": [_location(finding.file or "", finding.line or 1, finding.column)],
        "rank": round(100 * finding.certainty, 1),
        "properties": {"tests": tests, **finding.model_dump(mode="json", include={"values", "words"})},
    }
    if related:
        result["relatedLocations"] = [_location(place.file, place.line) for place in related]
    return result


def _location(file: str, line: int, column: int | None = None) -> dict[str, object]:
    region = {"startLine": line} | ({"startColumn": column} if column else {})
    return {"physicalLocation": {"artifactLocation": {"uri": file}, "region": region}}
