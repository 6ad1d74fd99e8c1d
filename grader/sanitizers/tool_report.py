"""Reports in one form for compute-sanitizer and the emulator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from grader.base.errors import UsageError
from grader.base.sizes import Count, Sentence
from grader.findings import Finding, kind_of

Check = Literal["memory", "race", "init", "sync"]
CHECKS: tuple[Check, ...] = get_args(Check)
MAX_SEEN = 1000
_SEVERITIES = ("error", "warning", "note")


@dataclass(frozen=True)
class Seen:
    """One fault at one place, seen `times` times; `first` is its first occurrence."""

    first: Finding
    times: Count


@dataclass(frozen=True)
class Report:
    """The findings of one tool. `not_run` says why it did not run, '' if it ran; `errors` is the tool's own total."""

    check: Check
    findings: Annotated[tuple[Seen, ...], Field(max_length=MAX_SEEN)] = ()
    errors: Count = 0
    not_run: Sentence = ""


def parse_checks(words: str) -> tuple[Check, ...]:
    """Parse a comma-separated list of checks, or `all`. Raises UsageError."""
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    if wanted == ["all"]:
        return CHECKS
    for word in wanted:
        if word not in CHECKS:
            raise UsageError(f"--sanitize: there is no check {word!r}; choose from {', '.join(CHECKS)}, or all.")
    return tuple(check for check in CHECKS if check in wanted)


def by_place(findings: Iterable[Finding]) -> tuple[Seen, ...]:
    """Group findings by kind, kernel and places, errors first, else in order of occurrence. Threads and numbers do not
    matter."""
    found: dict[tuple[object, ...], list[Finding]] = {}
    for each in findings:
        place = (each.kind, each.kernel, each.place, each.other, each.array, each.words.get("between"))
        found.setdefault(place, []).append(each)
    seen = (Seen(same[0], len(same)) for same in found.values())
    in_order = sorted(seen, key=lambda each: _SEVERITIES.index(kind_of(each.first).severity))
    return tuple(in_order)[:MAX_SEEN]
