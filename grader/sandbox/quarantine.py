"""Opens files that an untrusted program could have touched.

In a student's folder, or in a folder where make, nvcc or a program ran, a name can lead to the secret, to a pipe
without a writer, or to a file of many terabytes. No other module of the grader opens such a file
(tests/test_quarantine.py checks the code for that). This module follows a name component by component and through no
link. It accepts only a regular file that has no second name and is no larger than its reader can use, and reads the
file once.

The path of the folder itself is trusted: the grader made the folder, or a person named it. All programs that could
write into it must have ended.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path, PurePosixPath
from typing import IO

_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class Refused(Exception):
    """The file was not accepted. `missing`: no entry has that name."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing


def open_any(folder: Path, name: str, *, unlock: bool = False) -> int:
    """Open the entry `name` below `folder`, whatever its kind, and return a descriptor; the caller checks the kind.
    Never blocks on a pipe. `unlock`: permissions that a program removed are restored, so that the grade is the same
    whether root or an ordinary user runs the grader. Raises OSError, with ELOOP for a link."""
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or name.startswith("/"):
        raise FileNotFoundError(name)
    here = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            inner = os.open(part, _PLACE | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = inner
        try:
            return os.open(parts[-1], _FILE, dir_fd=here)
        except PermissionError:
            if not unlock or not _unlocked(parts[-1], here):
                raise
            return os.open(parts[-1], _FILE, dir_fd=here)
    finally:
        os.close(here)


def _unlocked(name: str, folder: int) -> bool:
    place = os.open(name, _PLACE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            return False
        Path(f"/proc/self/fd/{place}").chmod(0o600)
        return True
    finally:
        os.close(place)


def open_output(path: Path) -> int:
    """Open a run's output, which is directly in the run's folder, and return a descriptor. The caller checks the kind
    of the file."""
    return open_any(path.parent, path.name, unlock=True)


def open_file(folder: Path, name: str, most_bytes: int) -> IO[bytes]:
    """Open the file for reading. Raises Refused."""
    try:
        descriptor = open_any(folder, name)
    except ValueError as error:  # a NUL in the name
        raise Refused("has a name that no file can have", missing=True) from error
    except OSError as error:
        raise Refused(_unopened(folder, name, error), missing=isinstance(error, FileNotFoundError)) from error
    if why := _unfit(os.fstat(descriptor), most_bytes):
        os.close(descriptor)
        raise Refused(why)
    return os.fdopen(descriptor, "rb")


def _unopened(folder: Path, name: str, error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):  # a part of the name is a link, or a file where a folder is needed
        parts = [name, *map(str, PurePosixPath(name).parents)][:-1]
        if any(os.path.islink(folder / part) for part in parts):  # noqa: PTH114 (never raises)
            return "is a link: submit the file itself"
    return f"cannot be read: {error.strerror or 'there is no such file'}"


def _unfit(facts: os.stat_result, most_bytes: int) -> str:
    """The reason why a file with these properties is refused, as a phrase; '' if it is accepted."""
    if not stat.S_ISREG(facts.st_mode):
        return "is not a regular file"
    if facts.st_nlink != 1:
        return "has a second name (a hard link): a separate copy is needed"
    if facts.st_size > most_bytes:
        return f"is {facts.st_size:,} bytes, expected at most {most_bytes:,}"
    return ""


def read_bytes(folder: Path, name: str, most_bytes: int) -> bytes:
    """Return the file's content. Raises Refused."""
    with open_file(folder, name, most_bytes) as file:
        try:
            content = file.read(most_bytes + 1)
        except OSError as error:
            raise Refused(f"cannot be read: {error.strerror}") from error
    if len(content) > most_bytes:
        raise Refused(f"grew beyond {most_bytes:,} bytes while it was read")
    return content


def read_text(folder: Path, name: str, most_bytes: int) -> str:
    """Like `read_bytes`, but decoded; bytes that are not UTF-8 are replaced."""
    return read_bytes(folder, name, most_bytes).decode("utf-8", errors="replace")


def claim(folder: Path, name: str, target: Path, *, program: bool = False) -> bool:
    """Move a file that a compiler left directly in `folder` to `target`, and return whether that worked. The file has
    to be regular and without a second name; a `program` also has to be executable."""
    try:
        descriptor = open_any(folder, name)
    except OSError:
        return False
    try:
        facts = os.fstat(descriptor)
        if _unfit(facts, facts.st_size) or (program and not facts.st_mode & stat.S_IXUSR):
            return False
        try:
            (folder / name).rename(target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy(descriptor, target, facts.st_mode)  # /tmp and the cache may be different file systems
            return True
        return os.path.samestat(facts, target.lstat())
    finally:
        os.close(descriptor)


def _copy(descriptor: int, target: Path, mode: int) -> None:
    with open(descriptor, "rb", closefd=False) as source, target.open("xb") as copy:
        shutil.copyfileobj(source, copy)
    target.chmod(stat.S_IMODE(mode))
