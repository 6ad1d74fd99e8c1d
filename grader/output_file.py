"""Reading files that a hostile program may have left."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray


def open_untrusted(path: Path) -> int:
    """A descriptor of a file that a hostile program may have left: follows no link, waits for no pipe. A file whose
    permissions were taken away is read all the same, since root could: who grades must not change a grade."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        return os.open(path, flags)
    except PermissionError:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if not stat.S_ISREG(os.fstat(place).st_mode):
                raise
            Path(f"/proc/self/fd/{place}").chmod(0o600)
        finally:
            os.close(place)
        return os.open(path, flags)


def read_values(descriptor: int, into: NDArray[np.float32], offset: int) -> bool:
    """Fills `into` from byte `offset` on; False where the file ends before."""
    view = into.data.cast("B")
    while view:
        count = os.preadv(descriptor, [view], offset)
        if count == 0:
            return False
        view, offset = view[count:], offset + count
    return True
