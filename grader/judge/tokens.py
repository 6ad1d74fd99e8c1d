"""Tokens identify those who may use the judge: each student has one, and the staff has one. There are no passwords.

A token is `LABEL.SECRET`: twelve characters, by which its row is found, and 160 random bits. The store keeps only the
SHA-256 of the whole token; a slow hash is needed for passwords that can be guessed, not for that many random bits.
Digests are compared in constant time, even for an unknown label. A token is shown once, when it is made; a lost one is
replaced.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime

from grader.base.errors import UsageError
from grader.store import Store
from grader.store.sqlite_errors import translate_sqlite_errors

STAFF = ""
"""The `student` of the staff's token."""
_LABEL_BYTES, _SECRET_BYTES = 6, 20
_LONGEST = 200
_NOBODY = hashlib.sha256(b"nobody").hexdigest()


@dataclass(frozen=True)
class Person:
    """The person who sent a request: a student, or the staff."""

    student: str
    label: str

    @property
    def is_staff(self) -> bool:
        return self.student == STAFF

    @property
    def submits_as(self) -> str:
        """The id of this person's submissions; the staff's are model solutions, which get no grade."""
        return "model:staff" if self.is_staff else self.student


def make_token(store: Store, student: str) -> str:
    """Make a token for a student of the store, or for the staff, and revoke the one they had."""
    # A hexadecimal label never begins with "-". A spreadsheet takes a cell that begins with "-" for a formula, so
    # `csv_text` puts an apostrophe before it, and a mail merge would send the apostrophe as part of the token.
    label, secret = secrets.token_hex(_LABEL_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    token = f"{label}.{secret}"
    with translate_sqlite_errors(store.path), store.transaction():
        _revoke(store, student)
        store.execute("INSERT INTO judge_tokens VALUES (?, ?, ?, ?, NULL)", (label, student, _digest(token), _now()))
    return token


def revoke_token(store: Store, student: str) -> None:
    """Revoke a student's token. Raises UsageError if there is none."""
    with translate_sqlite_errors(store.path), store.transaction():
        if not _revoke(store, student):
            raise UsageError(f"{student or 'The staff'} has no token to revoke.")


def _revoke(store: Store, student: str) -> int:
    query = "UPDATE judge_tokens SET revoked = ? WHERE student = ? AND revoked IS NULL"
    return store.execute(query, (_now(), student)).rowcount


def have_tokens(store: Store) -> frozenset[str]:
    """The students who have a valid token; `STAFF` is among them if the staff has one."""
    with translate_sqlite_errors(store.path):
        return frozenset(row[0] for row in store.execute("SELECT student FROM judge_tokens WHERE revoked IS NULL"))


def valid_labels(store: Store) -> frozenset[str]:
    """The labels of the tokens that are not revoked."""
    return frozenset(row[0] for row in store.execute("SELECT label FROM judge_tokens WHERE revoked IS NULL"))


def person_of(store: Store, token: str) -> Person | None:
    """The person to whom this token belongs; None for a forged or revoked token."""
    if not token.isascii() or len(token) > _LONGEST:
        return None
    label = token.partition(".")[0]
    with translate_sqlite_errors(store.path):
        row = store.execute(
            "SELECT student, digest FROM judge_tokens WHERE label = ? AND revoked IS NULL", (label,)
        ).fetchone()
    student, digest = row or (STAFF, _NOBODY)
    same = hmac.compare_digest(_digest(token), digest)
    return Person(student, label) if same and row else None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
