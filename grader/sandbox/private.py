"""The files that no confined program may see, wherever they are stored: the course's, the cache, the secret."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import cache_folder, course_root

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
"""The system folders that programs see, for executables, headers and libraries. /opt, /home and /srv are left out,
because they may contain anything."""

ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf")
GPU_FACTS = ("/sys/bus/pci", "/sys/devices", "/sys/module/nvidia", "/sys/class/drm")


def hidden_in_system() -> tuple[Path, ...]:
    """Private folders and files that lie inside the visible system folders (a course under /usr/local, say)."""
    private = [cache_folder()]
    with contextlib.suppress(UsageError):
        private.append(course_root())
    if named := os.environ.get("GRADER_SECRET_FILE"):
        private.append(Path(named).expanduser())
    system = [Path(name).resolve() for name in SYSTEM]
    return tuple(
        path for each in private if (path := each.resolve()).exists() and any(map(path.is_relative_to, system))
    )


def visible_folders(value: str, shown: tuple[Path, ...]) -> str:
    """Keep the entries of a PATH-like list that a confined program can see: those in the system folders or in
    `shown`."""
    roots = (*map(Path, SYSTEM), *(path.resolve() for path in shown))
    entries = [entry for entry in value.split(":") if entry.startswith("/")]
    return ":".join(dict.fromkeys(entry for entry in entries if any(map(Path(entry).resolve().is_relative_to, roots))))
