"""The tables of the store, and the migration of older files.

`PRAGMA user_version` holds the number of migrations that were applied to a file. A migration is never edited after its
release; a new one is appended instead. Each runs in one transaction with its number, so a file is never half migrated.
"""

from __future__ import annotations

import sqlite3

APPLICATION_ID = 0x47524452
"""'GRDR' in ASCII. SQLite keeps this number in the file's header; it distinguishes a store from other SQLite files."""

MIGRATIONS = (
    """
    CREATE TABLE students (
        student   TEXT PRIMARY KEY,
        name      TEXT NOT NULL DEFAULT '',
        nickname  TEXT NOT NULL DEFAULT '',
        section   TEXT NOT NULL DEFAULT '',
        page      TEXT NOT NULL UNIQUE         -- the unguessable part of the student's page
    ) STRICT;
    CREATE TABLE submissions (                 -- one row per attempt; the same content again is the same attempt
        id         INTEGER PRIMARY KEY,
        assignment TEXT NOT NULL,
        student    TEXT NOT NULL REFERENCES students,
        sha256     TEXT NOT NULL,
        path       TEXT NOT NULL,
        handed_in  TEXT,                       -- ISO 8601, UTC; null: not known
        days_late  INTEGER NOT NULL DEFAULT 0,
        penalty    REAL NOT NULL DEFAULT 0,    -- share of the points that lateness costs, 0 to 1
        UNIQUE (assignment, student, sha256)
    ) STRICT;
    CREATE TABLE sources (
        submission INTEGER NOT NULL REFERENCES submissions ON DELETE CASCADE,
        name       TEXT NOT NULL,
        content    BLOB NOT NULL,              -- zlib
        PRIMARY KEY (submission, name)
    ) STRICT;
    CREATE TABLE records (
        id         INTEGER PRIMARY KEY,
        submission INTEGER NOT NULL REFERENCES submissions ON DELETE CASCADE,
        conditions TEXT NOT NULL,              -- what makes two gradings comparable: rules, testcases, engine
        created    TEXT NOT NULL,
        faulted    INTEGER NOT NULL,           -- the grader or the machine failed in it
        digest     TEXT NOT NULL UNIQUE,       -- SHA-256 of the JSON: the same record is never stored twice
        json       TEXT NOT NULL
    ) STRICT;
    CREATE INDEX records_by_submission ON records (submission, conditions);
    CREATE TABLE manual_points (
        assignment TEXT NOT NULL,
        student    TEXT NOT NULL REFERENCES students,
        part       TEXT NOT NULL,
        points     REAL NOT NULL,
        comment    TEXT NOT NULL DEFAULT '',
        entered    TEXT NOT NULL,
        PRIMARY KEY (assignment, student, part)
    ) STRICT;
    CREATE TABLE graders (
        id    INTEGER PRIMARY KEY AUTOINCREMENT,
        host  TEXT NOT NULL,
        pid   INTEGER NOT NULL,
        began TEXT NOT NULL
    ) STRICT;
    CREATE TABLE claims (
        submission INTEGER NOT NULL REFERENCES submissions ON DELETE CASCADE,
        conditions TEXT NOT NULL,
        grader     INTEGER NOT NULL REFERENCES graders ON DELETE CASCADE,
        PRIMARY KEY (submission, conditions)
    ) STRICT;
    """,
    "DROP TABLE claims;\nDROP TABLE graders;\n",
    """
    ALTER TABLE students ADD COLUMN email TEXT NOT NULL DEFAULT '';
    ALTER TABLE students ADD COLUMN enrolled INTEGER NOT NULL DEFAULT 0;  -- on a roster that was given
    """,
    """
    CREATE TABLE judge_tokens (                -- who may use the live judge (grader/judge/tokens.py)
        label   TEXT PRIMARY KEY,              -- the part of a token that is no secret
        student TEXT NOT NULL,                 -- '' for the staff
        digest  TEXT NOT NULL,                 -- SHA-256 of the whole token
        created TEXT NOT NULL,
        revoked TEXT
    ) STRICT;
    CREATE INDEX judge_tokens_by_student ON judge_tokens (student);
    CREATE TABLE judge_uploads (               -- what the live judge received; states: docs/judge.md
        number      INTEGER PRIMARY KEY,       -- the order of arrival
        id          TEXT NOT NULL UNIQUE,      -- its name in addresses
        repeat_key  TEXT NOT NULL,             -- the same key of the same student again is the same upload
        assignment  TEXT NOT NULL,
        student     TEXT NOT NULL REFERENCES students,
        received    REAL NOT NULL,             -- seconds since 1970, as all times of this table
        stage       TEXT NOT NULL,             -- verdict, timing
        state       TEXT NOT NULL,             -- waiting, running, done, replaced, withdrawn, failed
        priority    INTEGER NOT NULL DEFAULT 0,
        again       INTEGER NOT NULL DEFAULT 0,-- graded even if the same files were graded before
        verdict_tag REAL NOT NULL DEFAULT 0,   -- the place in the fair order (grader/judge/fairness.py)
        timing_tag  REAL NOT NULL DEFAULT 0,
        tries       INTEGER NOT NULL DEFAULT 0,
        began       REAL,
        verdict_s   REAL,                      -- how long a lane worked on each stage
        timing_s    REAL,
        first_at    REAL,                      -- when the verdicts were there
        submission  INTEGER REFERENCES submissions ON DELETE SET NULL,
        note        TEXT NOT NULL DEFAULT '',
        UNIQUE (student, repeat_key)
    ) STRICT;
    CREATE INDEX judge_uploads_by_state ON judge_uploads (state, stage);
    CREATE TABLE judge_files (
        upload  INTEGER NOT NULL REFERENCES judge_uploads ON DELETE CASCADE,
        name    TEXT NOT NULL,
        content BLOB NOT NULL,                 -- zlib
        PRIMARY KEY (upload, name)
    ) STRICT;
    CREATE TABLE judge_switches (              -- paused, draining, banned:ID, clock:STAGE
        name  TEXT PRIMARY KEY,
        value REAL NOT NULL
    ) STRICT;
    """,
    """
    ALTER TABLE judge_uploads ADD COLUMN digest TEXT NOT NULL DEFAULT '';  -- SHA-256 of the files as received
    """,
    """
    CREATE TABLE judge_tests (                 -- tests of running submissions, which a restart does not repeat
        upload     INTEGER NOT NULL REFERENCES judge_uploads ON DELETE CASCADE,
        conditions TEXT NOT NULL,
        name       TEXT NOT NULL,
        record     TEXT NOT NULL,
        PRIMARY KEY (upload, conditions, name)
    ) STRICT;
    """,
)


def version_of(connection: sqlite3.Connection) -> int:
    """The number of migrations that were applied to the file; 0 for an empty file."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection, most: int = len(MIGRATIONS)) -> None:
    """Apply the missing ones of the first `most` migrations. If two processes do so at once, the second finds them
    applied."""
    while (have := version_of(connection)) < most:
        connection.execute("BEGIN IMMEDIATE")
        try:
            if version_of(connection) == have:
                for statement in _statements(MIGRATIONS[have]):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {have + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _statements(script: str) -> list[str]:
    """Split a script into statements. (executescript cannot run it: that commits the transaction first.)"""
    found, pending = [], ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            found.append(pending)
            pending = ""
    return found
