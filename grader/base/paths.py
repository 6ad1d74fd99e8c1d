"""Finds the course's folders (assignment/, reference/, …) and the cache, for all other modules.

Also writes files atomically: at any moment a file is complete or absent.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO

from grader.base.errors import UsageError
from grader.base.names import printable_name


@cache
def course_root() -> Path:
    """The folder that holds `assignment/`, `testcases/`, ….

    GRADER_ROOT if set, else the checkout that this package runs from, else the nearest folder above the
    working directory that has an `assignment/`.
    """
    configured = os.environ.get("GRADER_ROOT")
    if configured:
        root = Path(configured).expanduser().resolve()
        if not (root / "assignment").is_dir():
            raise UsageError(
                f"GRADER_ROOT is {root}, which has no folder assignment/: set it to the course's checkout or unset it."
            )
        return root
    checkout = Path(__file__).resolve().parents[2]
    for folder in (checkout, Path.cwd(), *Path.cwd().parents):
        if (folder / "assignment").is_dir():
            return folder
    raise UsageError(
        f"No folder assignment/ was found next to the grader ({checkout}) or above {Path.cwd()}: "
        "run inside the course's checkout, or set GRADER_ROOT to it."
    )


def cache_folder() -> Path:
    """The folder for builds, baselines and native parts: GRADER_CACHE, else $XDG_CACHE_HOME/grader, else
    ~/.cache/grader."""
    configured = os.environ.get("GRADER_CACHE")
    if configured:
        return Path(configured).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base).expanduser().resolve() / "grader"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file for the new content of `path`. It replaces `path` at the end of the block; if the block
    fails or the disk is full, the old content stays."""
    with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=f".{path.name}.", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.fchmod(file.fileno(), 0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def shown(path: Path) -> str:
    """A path as a person would type it: relative to the working directory if it is inside."""
    try:
        return printable_name(str(path.resolve().relative_to(Path.cwd())))
    except (OSError, ValueError, RuntimeError):  # outside the working directory, or a link to itself
        return printable_name(str(path))
