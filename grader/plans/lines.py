"""The line of a submission that makes the current call. A submission is one file; a program that `grader run` runs may
import others of its folder, but libraries below that, as in .venv, are not its own."""

from __future__ import annotations

import os
import sys

folder = ""
"""The folder of the submission, which is left out of its files' names."""


def own_name(file: str) -> str:
    """The name of one of the submission's own files, in its folder; '' for other files."""
    place, name = os.path.split(file)
    return name if folder and place == folder else ""


def program_line() -> tuple[str, int]:
    """The file and line of the innermost call in the submission's own files; ("", 0) if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        if name := own_name(frame.f_code.co_filename):
            return name, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0
