"""Renders records as JUnit XML for GitHub, GitLab and Jenkins: a suite per submission, a case per testcase.

A student's failure is a `failure`; a fault of the grader or the machine is an `error`, so that a pipeline can
distinguish them. The format follows the schema of the Jenkins JUnit plugin
(https://github.com/jenkinsci/xunit-plugin, junit-10.xsd).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from xml.etree import ElementTree

from grader.base.verdict import Fault, Verdict
from grader.records.record import Record, TestRecord
from grader.report.failures import reasons

_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain in any form, but that a program may print."""


def render(records: Sequence[Record]) -> str:
    """The XML document."""
    root = ElementTree.Element("testsuites")
    for record in records:
        root.append(_suite(record))
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _suite(record: Record) -> ElementTree.Element:
    kinds = [_kind(test) for test in record.tests]
    said = reasons(record.tests)
    suite = ElementTree.Element(
        "testsuite",
        name=_legal(f"{record.assignment}.{record.submission.id}"),
        tests=str(len(kinds)),
        failures=str(kinds.count("failure")),
        errors=str(kinds.count("error")),
        skipped=str(kinds.count("skipped")),
        time=f"{sum(round(test.wall_s or 0, 3) for test in record.tests):.3f}",  # the sum of the testcases' times
        timestamp=datetime.fromisoformat(record.created).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        hostname=_legal(record.machine.host),
    )
    for test, kind in zip(record.tests, kinds, strict=True):
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_legal(f"{record.assignment}.{record.submission.id}"),
            name=test.name,
            time=f"{test.wall_s or 0:.3f}",
        )
        if kind == "skipped":
            ElementTree.SubElement(case, "skipped", message=_legal(test.reason))
        elif kind:
            outcome = ElementTree.SubElement(case, kind, message=_legal(said[test.name]), type=test.verdict.value)
            is_first = test is record.tests[0]
            outcome.text = _legal(record.build.log if not record.build.ok and is_first else said[test.name])
        if test.output.strip():
            ElementTree.SubElement(case, "system-out").text = _legal(test.output)
    return suite


def _kind(test: TestRecord) -> str:
    if test.verdict is Verdict.PASSED:
        return ""
    if test.verdict is Verdict.NOT_RUN:
        return "skipped"
    return "failure" if test.fault is Fault.STUDENT else "error"


def _legal(text: str) -> str:
    return _ILLEGAL.sub("�", text)
