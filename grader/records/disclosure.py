"""Decides how much of a program's output reaches a person; no other module does.

A program can leak its input through what it prints, how it ends, and the names and number of its kernels. We therefore
truncate every text. If a student may read only the verdict of a hidden test, we keep only our own sentences, without
figures. We keep times, although each can leak a few digits, because points come from them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grader.base.names import printable_name, spelled_out
from grader.base.verdict import Verdict
from grader.course.assignment import HiddenInputs
from grader.course.testcase import Case
from grader.records.record import MAX_RECORD_BYTES, ProfileRecord, TestRecord

MAX_WARNING = 300
"""The maximum number of characters of one warning or flag."""
MAX_REASON = 2000
_FIGURES = re.compile(r"\d[\d.,:x]*")
_SENTENCES = {
    Verdict.WRONG_ANSWER: "The output is wrong.",
    Verdict.TIME_LIMIT: "It took longer than this test allows.",
    Verdict.MEMORY_LIMIT: "It took more memory than this test allows.",
    Verdict.RUNTIME_ERROR: "It crashed, a CUDA call failed, or the processor did the work of the kernels.",
    Verdict.NO_OUTPUT: "It wrote no output file.",
    Verdict.GRADER_ERROR: "The grader or its machine failed on this test, which costs no points.",
}
_ENDED_BADLY = "The output is right, but the program did not end normally, or something in it failed."


def bounded(text: str, most: int) -> str:
    """At most `most` characters of a text, made printable."""
    text = spelled_out(text[: most + 1])
    return text if len(text) <= most else f"{text[: most - 1]}…"


def line(text: str, most: int = MAX_WARNING) -> str:
    """Like `bounded`, but on one line."""
    return bounded(printable_name(text[: most + 1]), most)


@dataclass(frozen=True)
class Doubt:
    """A reason not to believe a time: `what` is the grader's own phrase. `detail` explains it and may quote the
    program."""

    what: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.what}: {self.detail}" if self.detail else self.what

    def told(self, *, secret: bool) -> str:
        """The doubt as a sentence; if only the verdict may be shown, without figures and without its detail."""
        if secret:
            return f"{_FIGURES.sub('…', self.what)}."
        return f"{str(self).removesuffix('.')}."


def is_secret(rules: HiddenInputs, case: Case) -> bool:
    """Whether a student may read only the verdict of `case`."""
    return case.hidden and rules.show == "verdict"


def disclosed(fields: dict[str, Any], *, secret: bool) -> dict[str, Any]:
    """The fields of a test's record, reduced to what is safe to keep and show. `flags` and `timing_refused` are
    `Doubt.told` already."""
    if not secret:
        return fields | {
            "reason": bounded(fields["reason"], MAX_REASON),
            "cause": bounded(fields["cause"], MAX_REASON),
            "warnings": tuple(bounded(each, MAX_WARNING) for each in fields["warnings"]),
            "flags": tuple(bounded(each, MAX_WARNING) for each in fields["flags"]),
        }
    rounded = {name: round(fields[name], 1) for name in ("wall_s", "cpu_s") if fields[name] is not None}
    return (
        fields
        | rounded
        | {
            "max_error": None,
            "wrong_elements": None,
            "kernels": None,
            "exit": None,
            "output": "",
            "corners": (),
            "precision": (),
            "findings": (),
            "reason": _SENTENCES.get(fields["verdict"], fields["reason"]) if fields["reason"] else "",
            "cause": "",
            "warnings": (_ENDED_BADLY,) if fields["warnings"] else (),
        }
    )


def fitting(tests: Sequence[TestRecord]) -> tuple[TestRecord, ...]:
    """The tests, which share half of a record's bytes: one that takes more than its share keeps only its verdict, its
    numbers and the beginnings of its sentences."""
    share = MAX_RECORD_BYTES // 2 // max(1, len(tests))
    return tuple(test if len(test.model_dump_json()) <= share else _brief(test, share) for test in tests)


def _brief(test: TestRecord, share: int) -> TestRecord:
    most = min(MAX_WARNING, share // 100)
    changes: dict[str, object] = {name: bounded(getattr(test, name), most) for name in ("reason", "cause")}
    changes |= {name: tuple(bounded(each, most) for each in getattr(test, name)[:2]) for name in ("warnings", "flags")}
    return test.model_copy(update=changes | {"output": "", "corners": (), "findings": ()})


def disclosed_profile(profile: ProfileRecord, rules: HiddenInputs, case: Case) -> ProfileRecord:
    """The profile of a test, reduced to what is safe to keep and show, since the program chooses its kernels' names."""
    if is_secret(rules, case):
        reason = "its occupancy could not be measured" if profile.reason else ""
        return profile.model_copy(update={"reason": reason, "counted": (), "kernels": ()})
    kernels = tuple(kernel.model_copy(update={"name": line(kernel.name)}) for kernel in profile.kernels)
    counted = tuple(line(sentence) for sentence in profile.counted)
    return profile.model_copy(update={"reason": line(profile.reason), "counted": counted, "kernels": kernels})
