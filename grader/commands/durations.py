"""How long gradings took on this machine: for each assignment the last one in which all graded testcases passed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from grader.base.errors import MachineFault
from grader.base.verdict import Verdict
from grader.course.assignment import Assignment
from grader.course.testcase import Case
from grader.records.record import Record
from grader.sandbox.cache import cache_entry, making, put

NOT_MEASURED = "not measured"


def keep(record: Record, graded: Iterable[Case]) -> None:
    """Keep how long a grading took, with its compilation, if all testcases that are `graded` passed."""
    passed = {test.name for test in record.tests if test.verdict is Verdict.PASSED}
    if any(case.name not in passed for case in graded):
        return
    entry = _entry(record.assignment, record.measured_sha256)
    with contextlib.suppress(MachineFault), making(entry) as folder:
        made = folder / "said"
        made.write_text(f"{record.timings['total']:.3g} s on {record.engine.device}", encoding="utf-8")
        put(made, entry)


def last(rules: Assignment) -> str:
    """Such as `14.2 s on NVIDIA H100`; NOT_MEASURED without a grading by these rules."""
    try:
        return _entry(rules.name, rules.measured_sha256).read_text(encoding="utf-8")
    except OSError:
        return NOT_MEASURED


def _entry(name: str, measured_sha256: str) -> Path:
    return cache_entry("durations", f"{name}-{measured_sha256[:24]}")
