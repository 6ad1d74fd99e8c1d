"""One SQLite file that keeps a class: students, submissions, records and points entered by hand.

Theory of operation. Every method that writes is one transaction, which is on disk when the method returns (synchronous
= FULL). A grader killed at any moment therefore leaves a store in which every result is complete or absent. Between
transactions, this one file holds everything. There is no write-ahead log: it would keep the newest results in a second
file, and people copy only this one, even while a class is graded. Readers and writers wait up to a minute for their
turn. The schema makes every row's key unique, so that writing the same thing twice changes nothing. Only one grader at
a time grades a class into a store (`one_grader`). The file must be on a local disk: SQLite's locks do not hold over
NFS.

A submission is one attempt: one version of a student's files. A record belongs to an attempt, and was created under
conditions: rules, testcases, engine. Two gradings under the same conditions can be compared. Records are kept as the
JSON that docs/record.md describes, and everything else about them is derived from it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from grader.base.errors import UsageError
from grader.base.identity import identity
from grader.base.names import printable_name
from grader.base.paths import shown
from grader.records.record import RecheckRecord, Record, record_in
from grader.store import foreign, schema
from grader.store.rows import Attempt, Compressed, Files, HandIn, Kept, Points, Student, compressed, decompressed
from grader.store.sqlite_errors import BUSY_S, damage, translate_sqlite_errors

_STORE_MODE = 0o660
"""The mode of a new store: only its owner and, if the umask allows it, the group may read every student's source."""


def default_store(assignment: str) -> Path:
    """The default path of a class's store: results/ASSIGNMENT.sqlite below the working directory."""
    return Path("results") / f"{assignment}.sqlite"


@contextmanager
def open_store(path: Path, *, create: bool = False, damaged: bool = False) -> Iterator[Store]:
    """Open the store at `path`. Raises UsageError if it is missing (unless `create`), damaged (unless `damaged`, for
    commands that save what can be read), or a file of another program."""
    if not path.exists():
        if not create:
            raise UsageError(
                f"There is no store at {shown(path)}: grade a class into one with `grader grade FOLDER --store "
                f"{shown(path)}`, or name another with --store."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(_STORE_MODE)
        except OSError as error:
            raise UsageError(f"The store {shown(path)} cannot be created: {error.strerror}.") from error
    elif path.is_dir():
        raise UsageError(f"The store {shown(path)} is a folder, expected a file: name one inside it.")
    store = Store(path, damaged=damaged)
    try:
        yield store
    finally:
        store.close()


class Store:
    """An open store, for one thread of one process."""

    def __init__(self, path: Path, *, damaged: bool = False) -> None:
        self.path = path
        if journal := foreign.journal_that_names_a_file(path):
            raise UsageError(f"{shown(journal)} names another file, which SQLite would delete: remove this journal.")
        with translate_sqlite_errors(path):
            self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
            try:
                self._open(damaged)
            except BaseException:
                self._db.close()
                raise

    def _open(self, damaged: bool) -> None:
        db = self._db
        foreign.restrict(db)
        db.execute("BEGIN")  # one transaction for all three reads, since another grader may be creating the tables
        tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        application, version = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in _HEADER)
        sound = damaged or foreign.is_sound(db)
        ours = version > len(schema.MIGRATIONS) or foreign.has_our_schema(db, version, damaged=damaged)
        db.execute("COMMIT")
        if tables and application != schema.APPLICATION_ID:
            raise UsageError(f"{shown(self.path)} is a database of another program, not a store of this grader.")
        if version > len(schema.MIGRATIONS):
            raise UsageError(
                f"The store {shown(self.path)} has schema {version}, and this grader knows only up to "
                f"{len(schema.MIGRATIONS)}: use the newer grader that made it."
            )
        if not sound:
            raise UsageError(damage(self.path, "its pages are not in order"))
        if not ours:
            raise UsageError(
                f"{shown(self.path)} has other tables than a store of this grader: another program changed it. Import "
                "an export of it into a new store."
            )
        db.execute("PRAGMA foreign_keys = ON")
        if version < len(schema.MIGRATIONS):
            if db.execute("PRAGMA journal_mode").fetchone()[0] == "wal":  # an older store
                db.execute("PRAGMA journal_mode = DELETE")
            schema.migrate(db)
        db.execute("PRAGMA synchronous = FULL")
        db.row_factory = foreign.checked_row

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def one_grader(self) -> Iterator[None]:
        """Keep other processes from grading into this store while the block runs; readers and short writes continue.

        The lock is flock(2) on a file next to the store, so the kernel drops it however this process ends. (It is not
        on the store itself, since closing a second descriptor of the store would drop SQLite's locks.)

        Raises UsageError if another process is grading into the store, and names it. Raises it also if the store has a
        second name (a hard link): this lock and SQLite's journal are files named after one of the names, so a grader
        that uses the other name would not see them."""
        file = self.path.resolve()
        if file.stat().st_nlink > 1:
            raise UsageError(
                f"The store {shown(self.path)} has another name (a hard link), and two graders that use different "
                "names damage it. Keep one name, and copy the file if you need it in two places."
            )
        name = file.with_name(file.name + "-grader")
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UsageError(f"{shown(name)} cannot be opened: {error.strerror}; this file locks the store.") from error
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = os.pread(descriptor, 200, 0).decode(errors="replace").strip() or "another process"
                raise UsageError(
                    f"{holder} is grading into the store {shown(self.path)}: wait until it ends, or name another store "
                    "with --store."
                ) from None
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"Process {os.getpid()} on {platform.node()}".encode(), 0)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit all of the block's writes, or none. If such blocks are nested, the outermost one commits."""
        if self._db.in_transaction:
            yield
            return
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with translate_sqlite_errors(self.path), self.transaction():
            yield

    def _rows(self, query: str, *parameters: object) -> list[Any]:
        with translate_sqlite_errors(self.path):
            return self._db.execute(query, parameters).fetchall()

    def _first(self, query: str, *parameters: object) -> Any:
        """The first value of the first row; None if there is no row."""
        return next((row[0] for row in self._rows(query, *parameters)), None)

    # ---- writing ----

    def add_student(
        self,
        student: str,
        *,
        name: str | None = None,
        nickname: str | None = None,
        section: str | None = None,
        email: str | None = None,
        enrolled: bool = False,
    ) -> None:
        """Add or update a student. None leaves a stored value as it is, and '' clears it."""
        given = {"name": name, "nickname": nickname, "section": section, "email": email}
        words = {column: value or "" for column, value in given.items()}
        newer = {column for column, value in given.items() if value is not None}
        self._enter_student(Student(student, page=secrets.token_urlsafe(16), enrolled=enrolled, **words), newer)

    def import_student(self, student: Student) -> None:
        """Add a student from another store; what this store already knows stays."""
        self._enter_student(student, frozenset())

    def _enter_student(self, student: Student, newer: Set[str]) -> None:
        """Add or update a student. The columns in `newer` replace stored values; the others only fill in empty ones."""
        known = ", ".join(
            f"{each} = excluded.{each}" if each in newer else f"{each} = coalesce(nullif({each}, ''), excluded.{each})"
            for each in ("name", "nickname", "section", "email")
        )
        with self._writing():
            self._db.execute(
                "INSERT INTO students (student, name, nickname, section, page, email, enrolled) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (student) DO UPDATE SET {known}, "
                "enrolled = max(enrolled, excluded.enrolled)",
                astuple(student),
            )

    def add_submission(self, handed: HandIn) -> int:
        """Add or update an attempt, and return its number in this store. An attempt that the store already has gets the
        time and the lateness of `handed`."""
        return self._enter(
            handed,
            "path = excluded.path, handed_in = coalesce(excluded.handed_in, handed_in), "
            "days_late = excluded.days_late, penalty = excluded.penalty",
        )

    def import_submission(self, handed: HandIn) -> int:
        """Like `add_submission`, for an attempt from elsewhere: what the store already knows about it stays. The time
        and the lateness of `handed` are only taken if the store has no time for it."""
        return self._enter(
            handed,
            "days_late = iif(handed_in IS NULL, excluded.days_late, days_late), "
            "penalty = iif(handed_in IS NULL, excluded.penalty, penalty), "
            "handed_in = coalesce(handed_in, excluded.handed_in)",
        )

    def _enter(self, handed: HandIn, known: str) -> int:
        """Add or update an attempt. `known` is the SQL that updates an attempt that the store already has."""
        time = handed.handed_in.astimezone(UTC).isoformat(timespec="seconds") if handed.handed_in else None
        with self._writing():
            self.add_student(handed.student)
            (number,) = self._db.execute(
                "INSERT INTO submissions (assignment, student, sha256, path, handed_in, days_late, penalty) "
                f"VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (assignment, student, sha256) DO UPDATE SET {known} "
                "RETURNING id",
                (*_identity(handed), handed.path, time, handed.days_late, handed.penalty),
            ).fetchone()
            self._db.executemany(
                "INSERT INTO sources VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                [(number, *file) for file in handed.compressed or compressed(handed.files)],
            )
        return int(number)

    def penalty_of(self, handed: HandIn) -> float | None:
        """The penalty that was last entered for this attempt; None if the attempt is new."""
        query = f"SELECT penalty FROM submissions WHERE {_SUBMISSION}"
        penalty: float | None = self._first(query, *_identity(handed))
        return penalty

    def add_record(self, submission: int, conditions: str, record: Record) -> bool:
        """Store a record. Return False if the store already has this very record."""
        text = record.model_dump_json(by_alias=True)
        digest = hashlib.sha256(text.encode()).hexdigest()
        with self._writing():
            added = self._db.execute(
                "INSERT INTO records (submission, conditions, created, faulted, digest, json) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (digest) DO NOTHING",
                (submission, conditions, record.created, record.infrastructure_failed, digest, text),
            ).rowcount
        return bool(added)

    def bring_forward(self, kept: Kept) -> None:
        """Make a record the newest of its attempt. A person who grades again under earlier conditions wants the records
        made under them to count, not later ones."""
        newer = "SELECT 1 FROM records WHERE submission = (SELECT submission FROM records WHERE id = ?1) AND id > ?1"
        if self._first(newer, kept.row) is None:
            return
        with self._writing():
            self._db.execute("UPDATE records SET id = (SELECT max(id) + 1 FROM records) WHERE id = ?", (kept.row,))

    def add_recheck(self, attempt: Attempt, recheck: RecheckRecord) -> None:
        """Store a copy of an attempt's record that contains a recheck. The copy counts from now on."""
        conditions = self._first("SELECT conditions FROM records WHERE id = ?", attempt.record_id)
        self.add_record(attempt.submission, conditions, attempt.record.model_copy(update={"recheck": recheck}))

    def set_points(self, assignment: str, points: Sequence[Points]) -> None:
        """Enter points by hand, all or none; an earlier entry for the same student and part is replaced."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._writing():
            for entry in points:
                self._enter_points("REPLACE", assignment, entry, now)

    def import_points(self, assignment: str, entry: Points, entered: str) -> None:
        """Enter points from elsewhere; an entry that the store already has stays."""
        with self._writing():
            self._enter_points("IGNORE", assignment, entry, entered)

    def _enter_points(self, on_conflict: str, assignment: str, entry: Points, entered: str) -> None:
        self.add_student(entry.student)
        self._db.execute(
            f"INSERT OR {on_conflict} INTO manual_points VALUES (?, ?, ?, ?, ?, ?)",
            (assignment, entry.student, entry.part, entry.points, entry.comment, entered),
        )

    # ---- reading ----

    def kept(self, submission: int, conditions: str) -> Kept | None:
        """The record that counts for an attempt among those made under `conditions`, or under conditions that begin
        with these parts (see `records.conditions`); None if there is none."""
        query = (
            "SELECT id, conditions, json FROM records WHERE submission = ?1 AND (conditions = ?2 OR "
            "substr(conditions, 1, length(?2) + 1) = ?2 || '.') ORDER BY faulted, id DESC LIMIT 1"
        )
        for row, found, text in self._rows(query, submission, conditions):
            return Kept(row, found, self._record(submission, text))
        return None

    def newest_attempts(self, assignment: str) -> list[tuple[str, int]]:
        """(student, number) of each student's newest graded attempt."""
        query = (
            "SELECT student, id FROM (SELECT student, id, row_number() OVER (PARTITION BY student ORDER BY handed_in "
            "DESC, id DESC) AS place FROM submissions WHERE assignment = ? AND EXISTS (SELECT 1 FROM records WHERE "
            "submission = submissions.id)) WHERE place = 1"
        )
        return [(row[0], row[1]) for row in self._rows(query, assignment)]

    def text_that_counts(self, submission: int) -> str | None:
        """The JSON of the record that counts for an attempt (see `Attempt`); None if it has none."""
        query = f"SELECT json FROM records AS r WHERE submission = ? ORDER BY {_PRACTICE}, faulted, id DESC LIMIT 1"
        text: str | None = self._first(query, submission)
        return text

    def record_that_counts(self, submission: int) -> Record | None:
        """The record that counts for an attempt; None if it has none."""
        text = self.text_that_counts(submission)
        return None if text is None else self._record(submission, text)

    def earlier_records(self, attempt: Attempt) -> list[Record]:
        """The other records of an attempt than the one that counts, the newest first."""
        query = "SELECT json FROM records WHERE submission = ? AND id <> ? ORDER BY id DESC"
        rows = self._rows(query, attempt.submission, attempt.record_id)
        return [self._record(attempt.submission, row[0]) for row in rows]

    def find(self, assignment: str, student: str, sha256: str) -> int | None:
        """The number of an attempt in this store; None if the store does not have it."""
        query = f"SELECT id FROM submissions WHERE {_SUBMISSION}"
        number: int | None = self._first(query, assignment, student, sha256)
        return number

    def assignments(self) -> tuple[str, ...]:
        """The assignments for which the store holds records."""
        query = "SELECT DISTINCT assignment FROM submissions JOIN records ON submission = submissions.id ORDER BY 1"
        return tuple(row[0] for row in self._rows(query))

    def paths(self, assignment: str) -> list[str]:
        """Where each submission was when it was entered."""
        with translate_sqlite_errors(self.path):
            rows = self._db.execute("SELECT DISTINCT path FROM submissions WHERE assignment = ?", (assignment,))
            return [path for (path,) in rows]

    def attempts(
        self, assignment: str, student: str | None = None, *, only: int | None = None, last: bool = False
    ) -> Iterator[Attempt]:
        """Every graded attempt, by student and number, with the record that counts for it. `only` selects one attempt
        by its number in the store, `last` each student's last attempt; reading fewer records takes less time."""
        chosen = "AND s.student = ?" if student is not None else ""
        wanted = f"WHERE attempts.id = {int(only)}" if only is not None else "WHERE from_last = 1" if last else ""
        query = f"""
            SELECT attempts.*, number + from_last - 1, records.id, json FROM (
                SELECT s.id, s.sha256, s.handed_in, s.days_late, s.penalty, {_STUDENT},
                       row_number() OVER (PARTITION BY s.student ORDER BY s.handed_in, s.id) AS number,
                       row_number() OVER (PARTITION BY s.student ORDER BY s.handed_in DESC, s.id DESC) AS from_last
                FROM submissions s JOIN students p ON p.student = s.student
                WHERE s.assignment = ? {chosen} AND EXISTS (SELECT 1 FROM records WHERE submission = s.id)
            ) AS attempts JOIN records ON records.id = (SELECT r.id FROM records AS r WHERE r.submission = attempts.id
                                                        ORDER BY {_PRACTICE}, faulted, r.id DESC LIMIT 1)
            {wanted} ORDER BY student, number
        """
        parameters = (assignment,) if student is None else (assignment, student)
        with translate_sqlite_errors(self.path):
            for row in self._db.execute(query, parameters):
                yield Attempt(
                    submission=row[0],
                    student=Student(*row[5:12]),
                    number=row[12],
                    sha256=row[1],
                    handed_in=self._time(row[2]) if row[2] else None,
                    days_late=row[3],
                    penalty=self._finite(row[4], 0.0, 1.0),
                    record_id=row[15],
                    record=self._record(row[0], row[16]),
                    of=row[14],
                )

    def _finite(self, number: float, least: float = -1e9, most: float = 1e9) -> float:
        if not least <= number <= most:
            raise UsageError(damage(self.path, f"{number} stands where a number of points or a share should be"))
        return number

    def _time(self, text: str) -> datetime:
        try:
            return datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            raise UsageError(damage(self.path, f"{printable_name(text[:80])!r} is not a time")) from None

    def _record(self, submission: int, text: str) -> Record:
        try:
            return record_in(text)
        except ValueError as error:
            raise UsageError(
                f"The store {shown(self.path)} holds a record (of submission {submission}) that this grader "
                f"({identity()}) does not understand: {error}. Use the grader that wrote it, or a newer one; `grader "
                "store check` lists all of them."
            ) from error

    def sources(self, submission: int) -> Files:
        """The files of an attempt as they were handed in."""
        try:
            return decompressed(self.compressed_sources(submission))
        except zlib.error as error:
            raise UsageError(damage(self.path, f"a file of submission {submission}: {error}")) from None

    def compressed_sources(self, submission: int) -> Compressed:
        """The files of an attempt, compressed."""
        query = "SELECT name, content FROM sources WHERE submission = ? ORDER BY name"
        return tuple(self._rows(query, submission))

    def points(self, assignment: str) -> dict[str, dict[str, Points]]:
        """Points entered by hand, by student and part."""
        found: dict[str, dict[str, Points]] = {}
        query = "SELECT student, part, points, comment FROM manual_points WHERE assignment = ? ORDER BY 1, 2"
        for row in self._rows(query, assignment):
            found.setdefault(row[0], {})[row[1]] = Points(row[0], row[1], self._finite(row[2]), row[3])
        return found

    def execute(self, query: str, parameters: Sequence[object] = ()) -> sqlite3.Cursor:
        """Run a query, for `upkeep`, `exchange` and the judge's tables. A query that writes belongs in a
        `transaction`."""
        return self._db.execute(query, parameters)

    def without_result(self, assignment: str) -> list[tuple[Student, bool]]:
        """Students without a graded submission, by id, and whether each has one that is not graded yet."""
        query = f"""
            SELECT EXISTS (SELECT 1 FROM submissions WHERE assignment = ?1 AND student = p.student), {_STUDENT}
            FROM students AS p WHERE NOT EXISTS (
                SELECT 1 FROM submissions AS h JOIN records ON submission = h.id
                WHERE h.assignment = ?1 AND h.student = p.student
            ) ORDER BY student
        """
        return [(Student(*row[1:]), bool(row[0])) for row in self._rows(query, assignment)]

    def students(self) -> frozenset[str]:
        """The ids of all students in the store: those with a submission, and those on a roster."""
        return frozenset(row[0] for row in self._rows("SELECT student FROM students"))

    def counts(self) -> dict[str, int]:
        """The number of rows of each table."""
        tables = ("students", "submissions", "records", "manual_points")
        return {name: self._first(f"SELECT count(*) FROM {name}") for name in tables}


def _identity(handed: HandIn) -> tuple[str, str, str]:
    return handed.assignment, handed.student, handed.sha256


_SUBMISSION = "assignment = ? AND student = ? AND sha256 = ?"
"""The condition that selects a submission by its `_identity`."""
_HEADER = ("application_id", "user_version")
_STUDENT = "p.student, p.name, p.nickname, p.section, p.page, p.email, p.enrolled"
"""The columns of a `Student`."""
_PRACTICE = "CASE WHEN json_valid(r.json) THEN json_extract(r.json, '$.practice') END"
"""Whether a record comes from a practice run. Such a record has no total, and never replaces one that has a total."""
