"""Which graders are alive: so that two of them share a class's work and a dead one's work is taken over.

A grader that opens a store for grading takes a number from the table `graders` and locks that byte of the file
STORE-graders. The lock is an open file description's (fcntl(2), F_OFD_SETLK): the kernel drops it when the process
ends, however it ends, so a byte that can be locked belongs to a dead grader. No clock and no process id is trusted.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from pathlib import Path

_OFD_SETLK = 37  # F_OFD_SETLK of linux/fcntl.h; Python has no name for it before 3.9's, and mypy's stubs have none
_FLOCK = "hhqqi4x"


class Aliveness:
    """This process's lock, and a look at others'."""

    def __init__(self, store: Path) -> None:
        name = store.with_name(store.name + "-graders")
        self._descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def announce(self, grader: int) -> None:
        """Hold byte `grader` until this process ends or `close`."""
        _lock(self._descriptor, fcntl.F_WRLCK, grader)

    def lives(self, grader: int) -> bool:
        """Whether the process that announced `grader` still runs."""
        other = os.open(f"/proc/self/fd/{self._descriptor}", os.O_RDWR | os.O_CLOEXEC)
        try:
            _lock(other, fcntl.F_WRLCK, grader)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return True
            raise
        finally:
            os.close(other)
        return False

    def close(self) -> None:
        """Let go."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def _lock(descriptor: int, kind: int, byte: int) -> None:
    fcntl.fcntl(descriptor, _OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0))
