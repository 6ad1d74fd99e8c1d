"""One submission on one GPU at a time, across processes: times of programs that share a GPU say nothing.

The lock is flock(2) on a file named by the GPU's UUID in the grader's cache, so the kernel gives it back when its
holder ends, however it ends. Graders of different users share it when they share GRADER_CACHE.

The file holds the process that had the lock last, and whether it left the GPU `prepared` (see `grader.gpu_ready`):
whoever prepared a GPU ahead of a submission can so tell that nobody has run anything on it since.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from grader.errors import MachineFault
from grader.paths import cache_folder

_PREPARED = "prepared"


@dataclass(frozen=True)
class Hold:
    """The lock while it is held. `prepared`: this very process left the GPU prepared, and nobody had it since."""

    prepared: bool
    _descriptor: int

    def leave_prepared(self) -> None:
        """Note that nothing is left to prepare."""
        _write(self._descriptor, f"{os.getpid()} {_PREPARED}\n")


@contextlib.contextmanager
def gpu_to_ourselves(uuid: str, waiting: Callable[[str], None]) -> Iterator[Hold]:
    """Hold the GPU's lock while the block runs. `waiting` gets one sentence when another grader has it.

    Raises MachineFault where the lock's file cannot be made.
    """
    with _opened(uuid) as descriptor:
        if not _try(descriptor):
            holder = (_read(descriptor).split() or ["?"])[0]
            waiting(f"waiting for the GPU: process {holder} is timing another submission on it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield _held(descriptor)


@contextlib.contextmanager
def gpu_if_free(uuid: str) -> Iterator[Hold | None]:
    """As `gpu_to_ourselves`, but None instead of waiting."""
    with _opened(uuid) as descriptor:
        yield _held(descriptor) if _try(descriptor) else None


@contextlib.contextmanager
def _opened(uuid: str) -> Iterator[int]:
    path = cache_folder() / "locks" / f"gpu-{uuid}.lock"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise MachineFault(
            f"{path}: the lock of the GPU cannot be made ({error.strerror}); set GRADER_CACHE to a folder you can "
            "write to."
        ) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _held(descriptor: int) -> Hold:
    prepared = _read(descriptor).split() == [str(os.getpid()), _PREPARED]
    _write(descriptor, f"{os.getpid()}\n")
    return Hold(prepared, descriptor)


def _read(descriptor: int) -> str:
    return os.pread(descriptor, 64, 0).decode("ascii", "replace")


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)
