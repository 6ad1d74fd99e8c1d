"""Walking through folders that somebody handed in: without recursion, which thousands of nested folders would end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

DEEPEST = 40
"""Levels of folders that are looked into."""
MOST_ENTRIES = 100_000


def files_below(folder: Path) -> Iterator[Path]:
    """Files below `folder`, those at its top first, otherwise by name. Hidden folders and links to
    folders are not entered; what cannot be read, or lies too deep, is left aside."""
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
