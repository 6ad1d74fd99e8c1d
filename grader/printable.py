"""Text that somebody else wrote, for a terminal or a report."""

from __future__ import annotations


def printable(text: str, keep: str = "") -> str:
    """`text` with � for all that is no printable character and not in `keep`: escape sequences would move a terminal's
    cursor, lone surrogates can be written nowhere."""
    return "".join(c if c.isprintable() or c in keep else "\N{REPLACEMENT CHARACTER}" for c in text)
