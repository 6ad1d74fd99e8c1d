"""What becomes of another store's rows where this one has its own: nothing known is lost, whichever comes first."""

from __future__ import annotations

from grader.store.database import PRACTICE_OF, Points, Store, Student
from grader.store.faults import translate_sqlite_errors


def merge_student(store: Store, student: Student) -> None:
    """Add a student, or what is known of one there and not here."""
    with translate_sqlite_errors(store.path), store.transaction():
        store.execute(
            "INSERT INTO students (student, page) VALUES (?, ?) ON CONFLICT DO NOTHING",
            (student.id, student.page),
        )
        store.execute(
            "UPDATE students SET name = coalesce(nullif(name, ''), ?2), "
            "nickname = coalesce(nullif(nickname, ''), ?3), section = coalesce(nullif(section, ''), ?4), "
            "email = coalesce(nullif(email, ''), ?5), enrolled = max(enrolled, ?6) WHERE student = ?1",
            (student.id, student.name, student.nickname, student.section, student.email, student.enrolled),
        )


def merge_points(store: Store, assignment: str, entry: Points, entered: str) -> None:
    """Enter points, unless there is an entry here that was made later than `entered`."""
    store.add_student(entry.student)
    with translate_sqlite_errors(store.path), store.transaction():
        store.execute(
            "INSERT INTO manual_points VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (assignment, student, part) DO UPDATE "
            "SET points = excluded.points, comment = excluded.comment, entered = excluded.entered "
            "WHERE (excluded.entered, excluded.points, excluded.comment) > (entered, points, comment)",
            (assignment, entry.student, entry.part, entry.points, entry.comment, entered),
        )


def settle_records(store: Store, last: int) -> None:
    """After records were added behind number `last`: which of an attempt's count, those that counted here or those
    that did there? The ones that were created later; where that is the former, they are made the newest again."""
    counted = f"""
        SELECT submission, max(id) AS id, {PRACTICE_OF.format("records")} AS practice, faulted FROM records
        WHERE id {{}} ? GROUP BY submission, practice, faulted
    """
    query = f"""
        SELECT here.id FROM ({counted.format("<=")}) AS here JOIN ({counted.format(">")}) AS there
            ON (here.submission, here.practice, here.faulted) IS (there.submission, there.practice, there.faulted)
            JOIN records AS ours ON ours.id = here.id JOIN records AS theirs ON theirs.id = there.id
        WHERE (ours.created, ours.digest) > (theirs.created, theirs.digest) ORDER BY here.id
    """
    with translate_sqlite_errors(store.path), store.transaction():
        for (number,) in store.execute(query, (last, last)).fetchall():
            store.execute("UPDATE records SET id = (SELECT max(id) + 1 FROM records) WHERE id = ?", (number,))
