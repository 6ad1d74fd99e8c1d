"""One submission on one GPU at a time, across processes: times of programs that share a GPU say nothing.

The lock is flock(2) on a file named by the GPU's UUID in the grader's cache, so the kernel gives it back when its
holder ends, however it ends. Graders of different users share it when they share GRADER_CACHE.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator

from grader.errors import MachineFault
from grader.paths import cache_folder


@contextlib.contextmanager
def gpu_to_ourselves(uuid: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the GPU's lock while the block runs. `waiting` gets one sentence when another grader has it.

    Raises MachineFault where the lock's file cannot be made.
    """
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
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(f"waiting for the GPU: process {_holder(descriptor)} is timing another submission on it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "?"
