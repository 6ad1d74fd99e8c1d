"""What the grader keeps to be quicker next time goes when nobody has used it for long: its time of change says when."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from grader.sandbox.scratch import remove

KEPT_DAYS = 60


def mark_used(entry: Path) -> None:
    """Note that an entry, a file or a folder, is of use today."""
    with contextlib.suppress(OSError):  # another user's cache, or a file system that is read-only
        os.utime(entry)


def forget_unused(folder: Path, days: float = KEPT_DAYS) -> None:
    """Remove every entry of `folder` that has not been used for so many days; what cannot be removed stays."""
    oldest = time.time() - days * 86_400
    with contextlib.suppress(OSError):
        for entry in list(folder.iterdir()):
            if entry.lstat().st_mtime < oldest:
                remove(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink(missing_ok=True)
