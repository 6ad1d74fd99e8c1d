"""What no confined program may see, wherever it lies: the course's files, the cache, the secret."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.paths import cache_folder, course_root

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
"""What is shown of the system: programs, headers and libraries. Not /opt, /home or /srv, where anything may be."""

ETC = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "nsswitch.conf")
GPU_FACTS = ("/sys/bus/pci", "/sys/devices", "/sys/module/nvidia", "/sys/class/drm")


def hidden_in_system() -> tuple[Path, ...]:
    """Private folders and files that lie inside what is shown of the system (a course under /usr/local, say)."""
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
    """The entries of a PATH-like list that a confined program can see: those in the system or in `shown`."""
    roots = (*map(Path, SYSTEM), *(path.resolve() for path in shown))
    entries = [entry for entry in value.split(":") if entry.startswith("/")]
    return ":".join(dict.fromkeys(entry for entry in entries if any(map(Path(entry).resolve().is_relative_to, roots))))
