"""The child process in which a program runs, out of reach of the process that has its device."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import struct
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 1, 36, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls of Landlock, on every architecture
_PATH_BENEATH = 1
_REFER = 1 << 13
"""The right to move files to other folders, which every domain of Landlock must grant to keep it; since ABI 2."""
_MOST_DESCRIPTORS = 1 << 16


def adopt() -> None:
    """Become the parent of what a child leaves running."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def leave(kept: int) -> None:
    """In the child: end with the parent, close all descriptors but the first three and `kept`, and give up access to
    the parent's memory, since a process in a domain of Landlock can look into no process outside of it. Kernels without
    Landlock have only the guard (`guard`) against this."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.closerange(3, kept)
    os.closerange(kept + 1, _MOST_DESCRIPTORS)
    handled = struct.pack("<Q", _REFER)
    rules = _libc.syscall(_CREATE_RULESET, handled, len(handled), 0)
    if rules >= 0:
        root = os.open("/", os.O_PATH)
        _libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, struct.pack("<Qi", _REFER, root), 0)
        _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        _libc.syscall(_RESTRICT_SELF, rules, 0)
        os.close(root)
        os.close(rules)


def wait(child: int) -> int:
    """Wait for the child, and stop all that it started. Returns its exit code, or the negative number of the signal
    that ended it."""
    _, status = os.waitpid(child, 0)
    while left := _children():
        for process in left:
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def _children() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(word) for task in Path("/proc/self/task").iterdir() for word in _words(task / "children")]
    return []


def _words(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().split()
    return []
