"""Maintains a store: checks it for damage, and makes the file smaller."""

from __future__ import annotations

import hashlib
import sqlite3
import zlib

from grader.records.record import record_in
from grader.store.database import Store
from grader.store.rows import decompressed
from grader.store.sqlite_errors import translate_sqlite_errors


def check_store(store: Store) -> list[str]:
    """Check a store without changing it. Return a sentence for each problem."""
    problems: list[str] = []
    try:
        for (message,) in store.execute("PRAGMA integrity_check"):
            if message != "ok":
                problems.append(f"SQLite says: {message}.")
        for table, row, parent, _ in store.execute("PRAGMA foreign_key_check"):
            problems.append(f"{table}, row {row}: it refers to a row of {parent} that is missing.")
        for number, digest, text in store.execute("SELECT id, digest, json FROM records"):
            if hashlib.sha256(text.encode()).hexdigest() != digest:
                problems.append(f"Record {number} was changed after it was stored: its SHA-256 is not the stored one.")
            try:
                record_in(text)
            except ValueError as error:
                problems.append(f"Record {number} is not a record of this grader: {error}.")
        for submission, name, content in store.execute("SELECT submission, name, content FROM sources"):
            try:
                decompressed(((name, content),))
            except zlib.error:
                problems.append(f"Submission {submission}: its file {name} cannot be decompressed.")
    except sqlite3.DatabaseError as error:
        problems.append(f"The file is damaged: {error}. Save what can be read with `grader store export`.")
    return problems


def vacuum_store(store: Store) -> tuple[int, int]:
    """Rewrite the store's file to remove its unused space. Return its size in bytes before and after."""
    before = store.path.stat().st_size
    with translate_sqlite_errors(store.path):
        store.execute("VACUUM")
    return before, store.path.stat().st_size
