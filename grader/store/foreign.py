"""Opens an SQLite file that may come from somebody else.

A store is read in the grader's own process: it can hold gigabytes, and most commands need a few rows of it. What an
SQLite file could do there is taken away first. Its schema must be the one that `schema` makes, word by word, so it has
no view, trigger or generated column that computes without end. The functions that a schema may call are restricted, and
one value is limited. `PRAGMA quick_check` reads every page once (1 GB in half a second) before anything else does, and
finds pages that lead back to themselves, which a query would follow for ever; it also finds a value that has another
type than its column (the tables are STRICT). Every row of every query then passes `checked_row`, which bounds its
values. A journal next to it may not name a file, which SQLite would delete. A record in a row is read within the limits
of its types (`records.record`), and files are unpacked up to a size (`rows`).
"""

from __future__ import annotations

import functools
import math
import os
import sqlite3
from pathlib import Path
from typing import Any

from grader.base.sizes import MAX_TEXT
from grader.records.record import MAX_RECORD_BYTES
from grader.store import schema

MAX_VALUE_BYTES = 256 << 20
_LONG = {"json": MAX_RECORD_BYTES, "record": MAX_RECORD_BYTES, "comment": 100_000}
"""How many characters a column of text may have, if more than MAX_TEXT."""
_OF_SQLITE = frozenset({"sqlite_stat1", "sqlite_stat4", "sqlite_sequence"})
"""Tables that SQLite adds: ANALYZE those of statistics. VACUUM drops the last one if no table needs it any more."""


_JOURNAL = bytes.fromhex("d9d505f920a163d7")


def journal_that_names_a_file(store: Path) -> Path | None:
    """The journal of a store, if it ends with the name of another file. SQLite writes such a journal only where one
    transaction changes several databases, as ours never do, and deletes the file that it names
    (https://www.sqlite.org/fileformat.html#the_rollback_journal)."""
    journal = store.resolve()
    journal = journal.with_name(f"{journal.name}-journal")
    try:
        with journal.open("rb") as file:
            file.seek(-len(_JOURNAL), os.SEEK_END)
            return journal if file.read() == _JOURNAL else None
    except OSError:  # there is none, or an empty one
        return None


def restrict(db: sqlite3.Connection) -> None:
    """Let the file of this connection decide as little as possible."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
    db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)  # VACUUM attaches one
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0"):
        db.execute(f"PRAGMA {pragma}")


def checked_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row, if its texts have a length, and its numbers and bytes are where a store of ours can hold them."""
    for (name, *_), value in zip(cursor.description, row, strict=True):
        match value:
            case str():
                fits = len(value) <= _LONG.get(name, MAX_TEXT)
            case float():
                fits = math.isfinite(value)
            case bytes():
                fits = name == "content"
            case _:
                fits = True
        if not fits:
            error = sqlite3.DatabaseError(f"a value of {name} is none that a store can hold")
            error.sqlite_errorcode, error.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
            raise error
    return row


def has_our_schema(db: sqlite3.Connection, version: int, *, damaged: bool = False) -> bool:
    """Whether the file has exactly the tables and indices that the first `version` migrations make; of a damaged file,
    only their names count."""
    found, expected = _objects(db), _expected(version)
    return {each[:3] for each in found} <= {each[:3] for each in expected} if damaged else found == expected


def is_sound(db: sqlite3.Connection) -> bool:
    """Whether the file's pages are in order."""
    return bool(db.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))


@functools.cache
def _expected(version: int) -> frozenset[tuple[str, ...]]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    schema.migrate(db, version)
    found = _objects(db)
    db.close()
    return found


def _objects(db: sqlite3.Connection) -> frozenset[tuple[str, ...]]:
    rows = db.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master").fetchall()
    return frozenset(
        (kind, name, table, " ".join(sql.split()))
        for kind, name, table, sql in rows
        if not (kind == "table" and name in _OF_SQLITE)
    )
