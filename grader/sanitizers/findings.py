"""Findings and reports in one form for compute-sanitizer and the emulator."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

from grader.base.errors import UsageError
from grader.programs.trace import Diagnostic

Check = Literal["memory", "race", "init", "sync"]
CHECKS: tuple[Check, ...] = get_args(Check)


@dataclass(frozen=True)
class Finding:
    """One fault at one place, seen `times` times; `first` is its first occurrence."""

    first: Diagnostic
    times: int


@dataclass(frozen=True)
class Report:
    """The findings of one tool. `not_run` says why it did not run, '' if it ran; `errors` is the tool's own total."""

    check: Check
    findings: tuple[Finding, ...] = ()
    errors: int = 0
    not_run: str = ""


def parse_checks(words: str) -> tuple[Check, ...]:
    """Parse a comma-separated list of checks, or `all`. Raises UsageError."""
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    if wanted == ["all"]:
        return CHECKS
    for word in wanted:
        if word not in CHECKS:
            raise UsageError(f"--sanitize: there is no check {word!r}; choose from {', '.join(CHECKS)}, or all.")
    return tuple(check for check in CHECKS if check in wanted)


def by_place(diagnostics: Iterable[Diagnostic]) -> tuple[Finding, ...]:
    """Group the emulator's diagnostics into one finding per place and fault, errors first. Diagnostics of two accesses
    are grouped only if both their lines are equal; block, thread and address do not matter."""
    rank = {"error": 0, "warning": 1}
    found = counted(diagnostics, r"0x[0-9a-f]+|(?<!line )\b\d+")
    return tuple(sorted(found, key=lambda finding: rank.get(finding.first.severity, 2)))


def counted(diagnostics: Iterable[Diagnostic], differs: str) -> tuple[Finding, ...]:
    """Group diagnostics into one finding per place and fault, in order of occurrence. `differs` matches the parts in
    which messages about the same fault may differ."""
    found: dict[tuple[str | int | None, ...], Finding] = {}
    for each in diagnostics:
        place = (each.severity, re.sub(differs, "#", each.message), each.kernel, each.file, each.line)
        seen = found.get(place)
        found[place] = Finding(seen.first if seen else each, seen.times + 1 if seen else 1)
    return tuple(found.values())
