"""Temporary folders that go away whatever happens: also after a hostile program filled them, and after SIGKILL.

A folder's name begins with this process's id; if the grader is killed, the sandbox's watcher removes what begins so.
Programs may leave thousands of nested folders, or folders without permissions, in one: those are removed by rm(1),
which walks by descriptors and has no depth limit, while Python's own removal ends at its recursion limit.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path

from grader.base.errors import MachineFault
from grader.sandbox.watcher import claim_place, prefix_of


@contextlib.contextmanager
def scratch_folder(purpose: str, place: Path | None = None, *, linger: bool = False) -> Iterator[Path]:
    """An empty folder of mode 0700 in `place` (by default the system's place for temporary files), removed afterwards;
    with `linger` a little later (see `remove_soon`).

    Raises MachineFault when there is no room for it.
    """
    parent = place or Path(tempfile.gettempdir())
    try:
        folder = Path(tempfile.mkdtemp(prefix=f"{claim_name(parent)}{purpose}-", dir=parent))
    except OSError as error:
        raise MachineFault(
            f"No temporary folder could be made in {parent}: {error.strerror}; free some space there."
        ) from error
    try:
        yield folder
    finally:
        if linger:
            remove_soon(folder)
        else:
            remove(folder)


_remover = ThreadPoolExecutor(1, "remover")
"""The interpreter waits for it at its end."""
_removing: Future[None] | None = None
_ROOM_BYTES = 8 << 30
"""With less left than this, the next run may need what the last one took."""


def remove_soon(folder: Path) -> None:
    """As `remove`, in the background where the disk has room: the kernel takes 25 ms to free a file of 100 MB. One
    folder at most is waiting, so that no more than one run's files lie about."""
    global _removing
    wait_until_removed()
    try:
        room = shutil.disk_usage(folder.parent).free >= _ROOM_BYTES
    except OSError:
        room = False
    if room:
        _removing = _remover.submit(remove, folder)
    else:
        remove(folder)


def wait_until_removed() -> None:
    """Wait for what `remove_soon` has still to remove."""
    if _removing is not None:
        wait((_removing,))


_SHALLOW = 3
"""Levels of folders in what an honest run leaves; starting rm takes longer than removing them."""


def _remove_shallow(folder: Path, levels: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if levels > 1 and entry.is_dir(follow_symlinks=False):
                _remove_shallow(Path(entry.path), levels - 1)
            else:
                os.unlink(entry.path)  # noqa: PTH108 (there may be many)
    folder.rmdir()


def claim_name(place: Path) -> str:
    """A beginning for names in `place`; what begins so is removed should this process be killed."""
    claim_place(place)
    return prefix_of(os.getpid())


def remove(folder: Path) -> None:
    """Remove a folder with all that is in it, however deep and whatever its permissions; never fails."""
    with contextlib.suppress(OSError):
        _remove_shallow(folder, _SHALLOW)
        return
    words = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        subprocess.run(["chmod", "-R", "u+rwx", "--", str(folder)], capture_output=True, check=False)
        subprocess.run(words, capture_output=True, check=False)
