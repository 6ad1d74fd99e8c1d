"""The failures that a person sees. Each message is a whole sentence, or a phrase where its class says so.

What a program's author did wrong is `CompileFailed` (nvcc) and `Unsupported` (build).
"""

from __future__ import annotations

MAX_SENTENCE, MAX_DETAIL = 1000, 8000


class UsageError(Exception):
    """The user's error: a bad argument, file or configuration."""


class MachineFault(Exception):
    """The machine failed: disk full, no compiler. Repeating the command can help."""


class EmulatorFault(Exception):
    """The emulator translated a program wrongly."""


class Unreadable(Exception):
    """Bytes that a program's author or a compiler wrote could not be read. The message is a phrase, such as "took
    longer than 10 s of processor time"; `detail` is a traceback for the authors of the reader, or ''."""

    def __init__(self, why: str, detail: str = "") -> None:
        super().__init__(shortened(why))
        self.detail = detail[-MAX_DETAIL:]


class Exceeded(Unreadable):
    """A reader ended without an answer of its own: at a limit, in a crash, by an exception that nobody expected."""


def shortened(text: str, most: int = MAX_SENTENCE) -> str:
    """`text` with at most `most` characters; "…" stands for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"
