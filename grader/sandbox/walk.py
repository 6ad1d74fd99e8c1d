"""Walks through submitted folders without recursion, which thousands of nested folders would break."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

DEEPEST = 40
"""The most levels of nested folders that are searched."""
MOST_ENTRIES = 100_000


def files_below(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder` sorted by name, a folder's own files before those of its subfolders. Skips hidden
    folders, links to folders, and everything that cannot be read or is too deep."""
    seen = 0
    waiting = [(str(folder), 0)]
    while waiting and seen < MOST_ENTRIES:
        current, depth = waiting.pop()
        try:
            with os.scandir(current) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        seen += len(entries)
        folders = []
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry)
            else:
                yield Path(entry.path)
        if depth < DEEPEST:
            waiting += [(entry.path, depth + 1) for entry in reversed(folders) if not entry.name.startswith(".")]


def is_regular(path: Path) -> bool:
    """Whether there is a regular file, and no link, which this account may look at."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except (OSError, ValueError):
        return False
