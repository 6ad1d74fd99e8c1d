"""The line of a submission that makes the current call."""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from pathlib import Path

_LIBRARIES = tuple(
    f"{folder}{os.sep}"
    for folder in {
        str(Path(__file__).parents[1]),
        *(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib")),
        *site.getsitepackages(),
    }
)
folder = ""
"""The folder of the submission, which is left out of its files' names."""


def program_line() -> tuple[str, int]:
    """The file and line of the innermost call in the submission's own files; ("", 0) if there is none."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(("<", *_LIBRARIES)):
            return own_name(name), frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return "", 0


def own_name(file: str) -> str:
    """The name of one of the submission's files, relative to its folder."""
    return file.removeprefix(f"{folder}{os.sep}")
