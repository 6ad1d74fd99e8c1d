"""The cache: a folder of results that the grader keeps for later runs, by kind and name.

An entry is a file or a folder. It appears complete or not at all, even if several graders make it at the same time. Its
mtime is the time of its last use. Making an entry deletes entries of the same kind that were last used more than
KEPT_DAYS days ago, or an hour ago if the disk is nearly full, unless it is made for good.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from cudaemu.process import Stopped
from grader.base.errors import MachineFault
from grader.base.paths import cache_folder
from grader.sandbox.scratch import remove, scratch_folder

KEPT_DAYS = 60
_ROOM_BYTES, _CROWDED_DAYS = 8 << 30, 1 / 24
"""With less free disk space than this, only entries of the last hour are kept: submissions decide what is made."""

_being_made: dict[str, Future[Path]] = {}  # by threads of this process


def kept(kind: str, name: str, make: Callable[[Path], Path]) -> Path:
    """Return the cache entry `name` of this kind, after making it if it is missing. `make` gets an empty folder that no
    submission sees, and returns the file that it made there. Its exceptions propagate. Of several threads that want
    the same entry, one makes it; the others wait, and get its exception, too. Raises MachineFault if the cache cannot
    be written."""
    entry = cache_entry(kind, name)
    if entry.exists():
        mark_used(entry)
        return entry
    own = Future[Path]()
    if (other := _being_made.setdefault(str(entry), own)) is not own:
        try:
            return other.result()
        except Stopped:  # at that thread's limit
            return kept(kind, name, make)
    try:
        with making(entry) as folder:
            made = make(folder)
            try:
                made.rename(entry)
            except OSError:  # another grader made the same folder meanwhile, and may be reading it
                if not entry.is_dir():
                    raise
    except BaseException as error:
        del _being_made[str(entry)]
        own.set_exception(error if isinstance(error, Exception) else Stopped("the other thread was interrupted"))
        raise
    del _being_made[str(entry)]
    own.set_result(entry)
    return entry


def cache_entry(kind: str, name: str) -> Path:
    """The path of an entry, whether or not it exists yet."""
    return cache_folder() / kind / name


@contextlib.contextmanager
def making(entry: Path, *, for_good: bool = False) -> Iterator[Path]:
    """An empty folder to make `entry` in. With `for_good`, no entry of its kind is deleted. Raises MachineFault if
    creating it, or the block, fails with an OSError."""
    try:
        if not for_good:
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
    """Move `made` to the entry's place, and replace what is there."""
    try:
        made.rename(entry)
    except OSError:
        if not entry.is_dir():
            raise
        entry.rename(made.with_name("replaced"))  # the old entry is broken, or another grader made the same one
        made.rename(entry)


def mark_used(entry: Path) -> None:
    """Record that an entry, a file or a folder, was used today."""
    with contextlib.suppress(OSError):  # another user's cache, or a file system that is read-only
        os.utime(entry)


def forget_unused(folder: Path, days: float = KEPT_DAYS) -> None:
    """Remove every entry of `folder` that has not been used for `days` days; entries that cannot be removed stay."""
    with contextlib.suppress(OSError):
        crowded = shutil.disk_usage(folder).free < _ROOM_BYTES
        oldest = time.time() - (min(days, _CROWDED_DAYS) if crowded else days) * 86_400
        for entry in list(folder.iterdir()):
            if entry.lstat().st_mtime < oldest:
                remove(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink(missing_ok=True)
