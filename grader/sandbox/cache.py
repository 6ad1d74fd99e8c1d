"""The cache: what the grader keeps to be quicker next time, below one folder, by kind and name.

An entry is a file or a folder that appears whole or not at all, whoever makes the same at the same time. It goes when
nobody has used it for long: its mtime says when. Whatever makes an entry also removes old ones of its kind.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from grader.base.errors import MachineFault
from grader.base.paths import cache_folder
from grader.sandbox.scratch import remove, scratch_folder

KEPT_DAYS = 60


def kept(kind: str, name: str, make: Callable[[Path], Path]) -> Path:
    """The entry `name` of this kind: found in the cache, or made. `make` gets an empty folder that no submission sees
    and returns the file that it made in it; what it raises passes. Raises MachineFault where nothing can be written."""
    entry = cache_entry(kind, name)
    if entry.exists():
        mark_used(entry)
    else:
        with making(entry) as folder:
            put(make(folder), entry)
    return entry


def cache_entry(kind: str, name: str) -> Path:
    """Where an entry is, or will be."""
    return cache_folder() / kind / name


@contextlib.contextmanager
def making(entry: Path) -> Iterator[Path]:
    """An empty folder to make `entry` in. Raises MachineFault where it, or the block, cannot write."""
    try:
        forget_unused(entry.parent)
        entry.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder("make", entry.parent) as folder:
            yield folder
    except OSError as error:
        raise MachineFault(
            f"The cache {entry.parent} could not be written to: {error.strerror}; free some space, or set GRADER_CACHE "
            "to another folder."
        ) from error


def put(made: Path, entry: Path) -> None:
    """Move what was made into its place, instead of what is there."""
    try:
        made.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
        entry.rename(made.with_name("replaced"))  # a broken entry, or the same from another grader
        made.rename(entry)


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
