"""Temporary folders that are always removed, even after a hostile program filled them, and after SIGKILL.

A folder's name begins with this process's id; if the grader is killed, the sandbox's watcher removes everything with
that prefix. Programs may leave thousands of nested folders, or folders without permissions. The grader removes those
with rm(1), which walks by descriptors and has no depth limit; Python's own removal fails at its recursion limit.
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
    """An empty folder of mode 0700 in `place` (by default the system's folder for temporary files), which is removed
    after the block, or with `linger` a little later (see `remove_soon`).

    Raises MachineFault if the folder cannot be made.
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
"""The thread of `remove_soon`. The interpreter waits for it before it exits."""
_removing: Future[None] | None = None
_ROOM_BYTES = 8 << 30
"""With less free disk space than this, files are deleted at once, because the next run needs their space."""


def remove_soon(folder: Path) -> None:
    """Like `remove`, but in the background if the disk has room, because the kernel takes 25 ms to free a file of 100
    MB. At most one folder waits for its removal, so that the files of at most one ended run remain on disk."""
    global _removing
    wait_until_removed()
    try:
        room = shutil.disk_usage(folder.parent).free >= _ROOM_BYTES
    except OSError:
        room = False
    if room:
        with contextlib.suppress(RuntimeError):  # the interpreter is ending
            _removing = _remover.submit(remove, folder)
            return
    remove(folder)


def wait_until_removed() -> None:
    """Wait until `remove_soon` has removed its folder."""
    if _removing is not None:
        wait((_removing,))


_SHALLOW = 3
"""An honest run leaves at most this many levels of folders; removing them here is faster than starting rm."""


def _remove_shallow(folder: Path, levels: int) -> None:
    with os.scandir(folder) as entries:
        for entry in entries:
            if levels > 1 and entry.is_dir(follow_symlinks=False):
                _remove_shallow(Path(entry.path), levels - 1)
            else:
                os.unlink(entry.path)  # noqa: PTH108 (there may be many)
    folder.rmdir()


def claim_name(place: Path) -> str:
    """A prefix for names in `place`. If this process is killed, everything with that prefix is removed."""
    claim_place(place)
    return prefix_of(os.getpid())


def remove(folder: Path) -> None:
    """Remove a folder and its contents, however deep and whatever their permissions. Never raises."""
    with contextlib.suppress(OSError):
        _remove_shallow(folder, _SHALLOW)
        return
    words = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    if subprocess.run(words, capture_output=True, check=False).returncode != 0:
        subprocess.run(["chmod", "-R", "u+rwx", "--", str(folder)], capture_output=True, check=False)
        subprocess.run(words, capture_output=True, check=False)
