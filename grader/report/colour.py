"""Colours a finished report for a terminal: verdicts, places in the source, the closing sentence.

Text of a submission can look like a verdict, so only the verdict's column of the table is coloured.
"""

from __future__ import annotations

import os
import re
from typing import TextIO

from grader.base.verdict import Verdict

_RED, _GREEN, _BOLD, _END = "\x1b[31m", "\x1b[32m", "\x1b[1m", "\x1b[0m"
_FAILED = "|".join(verdict.words.upper() for verdict in Verdict)
_ROW = re.compile(rf"^(\S+  +\S.*?  )(passed|{_FAILED})(?=  |$)", re.MULTILINE)
_PLACE = re.compile(r"(?<![\w/])([\w./-]+\.(?:cuh?|h|hpp|cpp|py):\d+)")
_ALL_PASSED = re.compile(r"^(?:All \d+ tests passed|The test passed)\.$", re.MULTILINE)
_SOME_PASSED = re.compile(r"^\d+ of \d+ tests passed(?=;)", re.MULTILINE)


def wants_colour(stream: TextIO) -> bool:
    """Whether a stream shows colours: it is a terminal, and nobody asked for none (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str) -> str:
    text = _PLACE.sub(rf"{_BOLD}\1{_END}", text)
    text = _ROW.sub(lambda row: f"{row[1]}{_GREEN if row[2] == 'passed' else _RED}{row[2]}{_END}", text)
    text = _ALL_PASSED.sub(lambda found: f"{_GREEN}{found[0]}{_END}", text)
    return _SOME_PASSED.sub(lambda found: f"{_RED}{found[0]}{_END}", text)
