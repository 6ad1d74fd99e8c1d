"""Lets one submission at a time use a GPU, across processes: times of programs that share a GPU are meaningless.

The lock is an flock(2) on a file named after the GPU's UUID, so the kernel releases it when its holder ends. The file
is in a world-writable folder, because the graders of all users share it; GRADER_LOCKS names another folder. The file
contains the process id of the last grader that held the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

from grader.base.errors import MachineFault

PLACES = (Path("/run/lock"), Path("/dev/shm"), Path("/tmp"))
"""Folders that are usually world-writable. /run/lock is the folder for locks on Debian and Ubuntu; on other systems
only root may write to it."""


@contextlib.contextmanager
def gpu_to_ourselves(uuid: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the GPU's lock while the block runs. If another grader holds it, `waiting` is called with one sentence.

    Raises MachineFault if the lock file cannot be opened.
    """
    with _opened(uuid) as descriptor:
        if not _try(descriptor):
            holder = os.pread(descriptor, 64, 0).decode("ascii", "replace").strip() or "?"
            waiting(f"waiting for the GPU: process {holder} is timing another submission on it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield


@contextlib.contextmanager
def _opened(uuid: str) -> Iterator[int]:
    path = lock_folder() / f"cuda-homework-grader-{uuid}.lock"
    try:
        descriptor = _open(path)
    except OSError as error:
        raise MachineFault(
            f"{path}: the lock of the GPU cannot be opened ({error.strerror}); remove that file, or set GRADER_LOCKS "
            "to a folder that all graders on this machine can write to."
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def lock_folder() -> Path:
    """GRADER_LOCKS, or else the first folder of PLACES in which every user of this machine may create files."""
    if configured := os.environ.get("GRADER_LOCKS"):
        return Path(configured)
    return next((place for place in PLACES if place.is_dir() and place.stat().st_mode & stat.S_IWOTH), PLACES[-1])


def _open(path: Path) -> int:
    """Open a file that may belong to another user, or create it for all users. The first attempt is without O_CREAT,
    because the kernel refuses O_CREAT on another user's file in a shared folder (protected_regular). Links are
    refused."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    while True:
        with contextlib.suppress(FileNotFoundError):
            return os.open(path, flags)
        with contextlib.suppress(FileExistsError):  # another grader made it meanwhile
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL)
            os.fchmod(descriptor, 0o666)  # regardless of the umask
            return descriptor


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
