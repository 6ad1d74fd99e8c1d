"""Keeps a program from files through which it could look into or change its own process, by Python's audit hooks
(PEP 578), which no program can remove.

The rules for a program's text forbid this too, but a path can be made up at run time. Python's own modules and Triton
may open such files: the frames between the program's code and the call show who does.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PosixPath, PurePosixPath
from typing import Any

import triton

from grader.python.library import is_own

_OF_THE_SYSTEM = ("/proc/", "/sys/")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/shm/")
"""What a program may open in /dev. The grader's own inputs may be in memory."""
_OPENS_DESCRIPTORS = tuple(f"{sysconfig.get_path('stdlib')}{os.sep}{name}.py" for name in ("subprocess", "os"))
"""The modules that open files by their descriptors, and that a program cannot import."""
_TRITON = f"{Path(triton.__file__).parent}{os.sep}"
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {
    "os.remove": 1,
    "os.rename": 2,
    "os.rmdir": 1,
    "os.mkdir": 1,
    "os.chmod": 1,
    "os.truncate": 1,
    "os.utime": 1,
}
"""Audit events that change files, with the number of paths among their arguments."""


def watch_files(kept: Sequence[Path], opened: Mapping[str, Callable[[], None]]) -> None:
    """From now on, keep the program from opening files of the system and descriptors, from making links, and from
    changing what is in the folders `kept`. When a path in `opened` is opened, its function is called."""
    folders = tuple(f"{os.path.realpath(folder)}{os.sep}" for folder in kept)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            name, _, flags = arguments
            if isinstance(name, int):
                number = int.__int__(name)
                if number > 2 and sys._getframe(1).f_code.co_filename not in _OPENS_DESCRIPTORS:
                    raise PermissionError(f"a program may not open the file descriptor {number}")
                return
            plain = _plain(name)
            path = os.path.realpath(plain)
            if _is_of_the_system(plain):
                raise PermissionError(f"a program may not open {plain}")
            if flags & _WRITES:
                protect(path)
            if path in opened:
                opened[path]()
        elif event in ("os.symlink", "os.link"):
            raise PermissionError("a program may not make links")
        elif event in _CHANGES:
            for name in arguments[: _CHANGES[event]]:
                if not isinstance(name, int):
                    protect(os.path.realpath(_plain(name)))

    def protect(path: str) -> None:
        if f"{path}{os.sep}".startswith(folders) and _is_the_programs_doing():
            raise PermissionError(f"a program may not change {path}")

    sys.addaudithook(watch)


def _plain(name: Any) -> str:
    """A path as the kernel gets it, whatever the methods of its class say."""
    if type(name) is bytes:
        return os.fsdecode(name)
    if type(name) not in (str, PosixPath, PurePosixPath):
        raise PermissionError("a program may open files only by paths of type str, bytes or Path")
    return str(name)


def _is_of_the_system(path: str) -> bool:
    """Whether a path leads through a folder of the system, also by links, as /dev/fd does."""
    whole = os.path.abspath(path)  # noqa: PTH100 - links are looked at below
    if whole.startswith("/dev/") and not whole.startswith(_DEVICES):
        return True
    places = (os.path.realpath(part) for part in (whole, *map(str, Path(whole).parents)))
    return any(f"{place}{os.sep}".startswith(_OF_THE_SYSTEM) for place in places)


def _is_the_programs_doing() -> bool:
    """Whether the program's own code makes the current call, and not Triton on its behalf."""
    frame = sys._getframe(1)
    while frame is not None and not frame.f_code.co_filename.startswith(_TRITON):
        if is_own(frame):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False
