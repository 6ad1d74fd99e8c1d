"""Classifies the outcome of a program by its exit code and by the output of the program and of `grader run`."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

WAIVED = 2
"""EXIT_WAIVED of cuda-samples: the program itself says that it cannot run here."""
_WRONG = re.compile(r"\b(?:FAIL(?:ED|URE)?|[Ff]ailed|MISMATCH|[Mm]ismatch|[Ii]ncorrect|Result = FAIL)\b")
_POLYBENCH = re.compile(r"Non-Matching CPU-GPU Outputs.*: (\d+)")
_NOT_BUILT = re.compile(r"^grader: error: \S+ was not built\.(.*)$", re.MULTILINE)
_REFUSED = "The emulator cannot run this program: "
_FAULT = re.compile(r"^(?:\S+:\d+: )?error: (.+)$", re.MULTILINE)
_NUMBERS = re.compile(r"0x[0-9a-f]+|\b\d+\b")


@dataclass(frozen=True)
class Cause:
    """`kind` is one of the table's groups, `detail` a sentence."""

    kind: str
    detail: str = ""


def cause_of(code: int | None, out: str, err: str, limit_s: float) -> Cause:
    """The outcome of a run with exit code `code`, which is None if it was stopped after `limit_s`."""
    if code is None:
        return Cause("hang", f"stopped after {limit_s:g} s")
    if (built := _NOT_BUILT.search(err)) is not None:
        sentence = built[1].strip() or _first_error(err[built.end() :])
        if sentence.startswith(_REFUSED):
            return Cause("refused", sentence.removeprefix(_REFUSED))
        return Cause("does not build", sentence)
    if "the emulator itself failed" in err or "grader: the grader failed" in err:
        return Cause("crash", _first(err, "failed"))
    if code >= 128:
        known = {s.value: s.name for s in signal.Signals}
        return Cause("crash", known.get(code - 128, f"exit code {code}"))
    if (fault := _FAULT.search(err)) is not None:
        return Cause("wrong result", _NUMBERS.sub("N", fault[1])[:160])
    if code != 0 and "grader: error: " in err:  # a note of the grader's refuses nothing
        return Cause("refused", _first(err, "grader: error: ").removeprefix("grader: error: "))
    if code == WAIVED and not _WRONG.search(out):
        return Cause("waived", "the program says that it cannot run here")
    beyond = sum(int(count) for count in _POLYBENCH.findall(out))
    if beyond:
        return Cause("wrong result", f"{beyond} numbers")
    if code != 0:
        return Cause("wrong result", f"exit code {code}")
    said = _WRONG.search(out + err)
    return Cause("wrong result", f"it says {said[0]}") if said else Cause("passes")


def _first_error(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if re.search(r"error|undefined", line)), "no reason given")


def _first(text: str, part: str) -> str:
    return next((line.strip()[:160] for line in text.splitlines() if part in line), "")
