"""Translates SQLite's errors to sentences: what happened to which file, and what to do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.paths import shown

BUSY_S = 60
"""The seconds that a connection waits for a lock that another one holds."""


@contextlib.contextmanager
def translate_sqlite_errors(path: Path) -> Iterator[None]:
    """Turn sqlite3's errors in the block into a UsageError, MachineFault or GraderFault about `path`."""
    try:
        yield
    except sqlite3.Error as error:
        raise _sentence(path, error) from error


def damage(path: Path, why: str) -> str:
    """The sentence about a store that cannot be read."""
    return (
        f"The store {shown(path)} is damaged or is not a store ({why}). It was not changed: move it aside, then save "
        "what can be read with `grader store export`, or import your last export into a new one."
    )


def _sentence(path: Path, error: sqlite3.Error) -> Exception:
    code = getattr(error, "sqlite_errorcode", None) or 0
    name, where = str(getattr(error, "sqlite_errorname", "") or type(error).__name__), shown(path)
    primary = code & 0xFF
    if primary in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT) or "decode to UTF-8" in str(error):
        return UsageError(damage(path, str(error)))
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN):
        return UsageError(
            f"The store {where} cannot be written ({error}): the file and its folder ({shown(path.parent)}) must "
            "exist and be writable by you; choose another place with --store."
        )
    if primary == sqlite3.SQLITE_FULL or (primary == sqlite3.SQLITE_IOERR and "WRITE" in name):
        return MachineFault(
            f"The disk that holds the store {where} is full ({error}). What was stored before is safe; free some "
            "space and repeat the command: it continues where it stopped."
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return MachineFault(
            f"The store {where} was locked by another program for {BUSY_S} s: end that program, then try again."
        )
    if primary == sqlite3.SQLITE_IOERR:
        return MachineFault(f"The store {where} cannot be read or written ({error}, {name}): check its disk.")
    return GraderFault(f"The store {where}: {error} ({name}).")
