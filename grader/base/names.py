"""Names and untrusted text, made safe to store, compare and print."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable
from typing import TextIO

_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and newline, direction overrides, and bytes that are not UTF-8 (surrogates). They could
control a terminal, hide text, or fail to be written."""


def spelled_out(text: str) -> str:
    """`text`, of one or more lines, with unprintable characters written as \\x1b or \\udce9."""
    return _UNPRINTABLE.sub(lambda found: _escaped(found[0]), text.replace("\r\n", "\n"))


def printable_name(text: str) -> str:
    """Like `spelled_out`, on one line."""
    return spelled_out(text).replace("\n", "\\n").replace("\t", "\\t")


SOURCE_FOLDER = "source"
"""The name of the folder in which a submission's files lie while they are compiled."""


def handed_in_name(file: str) -> str:
    """The name that the student knows, from the path under which a source file was compiled."""
    return file.rpartition(f"/{SOURCE_FOLDER}/")[2]


def student_id(text: str) -> str:
    """`text` as a student's id: on one line, with composed accents (macOS decomposes accented letters, rosters do
    not)."""
    return unicodedata.normalize("NFC", printable_name(text.strip()))


def say(
    text: str,
    *,
    end: str = "\n",
    file: TextIO | None = None,
    flush: bool = False,
    paint: Callable[[str], str] | None = None,
) -> None:
    """Print text for a person. It may quote a submission, a store or a record, which could control the terminal;
    `paint` adds colours to the text that cannot."""
    safe = spelled_out(text)
    print(paint(safe) if paint is not None else safe, end=end, file=file, flush=flush)


def did_you_mean(name: str, known: Iterable[str], most: int = 1) -> str:
    """ " Did you mean t01 or t11?", or '' if none of the known names is close."""
    close = difflib.get_close_matches(name, list(known), n=most)
    return f" Did you mean {' or '.join(close)}?" if close else ""


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
