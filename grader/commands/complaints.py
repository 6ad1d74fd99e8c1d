"""Answers to complaints: explain a record of the store, run it again, or compare it with another."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from grader.base.errors import UsageError
from grader.base.names import student_id
from grader.base.paths import shown
from grader.classes.final_points import Line, days_words, share_words, standing
from grader.commands.choice import Choice
from grader.commands.stores import open_chosen
from grader.commands.submissions import grade_paths
from grader.records.record import Record, read_record
from grader.report import explain as explanation
from grader.report.source_diff import source_difference
from grader.sandbox.room import Unreadable
from grader.store import Attempt, Compressed, Store

Grade = Callable[[Path, Record], Record]
"""A function that grades the files in a folder under the same conditions as a record."""

_MAX_FOLDER = 60
"""Characters of a student's id, from any store, that name a folder."""


@dataclass(frozen=True)
class Named:
    """A record, and the compressed sources that were graded; None if there are none, as for a record from a file."""

    record: Record
    sources: Compressed | None = None


def named(words: str, store: Callable[[], tuple[Store, str]]) -> Named:
    """What `words` name: a JSON file, or `ID` or `ID#ATTEMPT` in the store, with `~1` for the result before the one
    that counts. Raises UsageError."""
    if (path := Path(words)).is_file():
        return Named(read_record(path))
    opened, assignment = store()
    whose, tilde, steps = words.rpartition("~")
    if not tilde or not steps.isdecimal():
        attempt = attempt_named(opened, assignment, words)
        record = attempt.record
    else:
        attempt = attempt_named(opened, assignment, whose)
        earlier = opened.earlier_records(attempt)
        if not 1 <= int(steps) <= len(earlier):
            have = f"{len(earlier)} earlier result{'s' * (len(earlier) != 1)}"
            raise UsageError(f"{whose} has {have} of this attempt, so there is no ~{steps}.")
        record = earlier[int(steps) - 1]
    return Named(_with_entered(opened, attempt, record), opened.compressed_sources(attempt.submission))


def _with_entered(store: Store, attempt: Attempt, record: Record) -> Record:
    """Return `record` with the points that assistants entered for the attempt's student."""
    entered = store.points(record.assignment).get(attempt.student.id, {})
    parts = [
        part.model_copy(update={"points": entered[part.part].points}) if part.part in entered else part
        for part in record.parts
    ]
    return record.model_copy(update={"parts": tuple(parts)})


def attempt_named(store: Store, assignment: str, words: str) -> Attempt:
    """The attempt that `words` names: `ID` means a student's latest attempt, `ID#2` the second. Raises UsageError."""
    words = student_id(words)
    student, number = words, ""
    attempts = list(store.attempts(assignment, words))  # an id may contain # itself
    if not attempts and "#" in words:
        student, _, number = words.rpartition("#")
        attempts = list(store.attempts(assignment, student))
    if not attempts:
        raise UsageError(
            f"{words!r} is not a file, and {shown(store.path)} has no student with that id in {assignment}."
        )
    if not number:
        return attempts[-1]
    chosen = [attempt for attempt in attempts if str(attempt.number) == number]
    if not chosen:
        raise UsageError(f"{student} has attempts 1 to {len(attempts)}, not {number}.")
    return chosen[0]


def explain(words: str, store: Path | None, assignment: str | None) -> str:
    """Trace every number of an attempt back to its inputs, and show lateness and manual points from the store."""
    with open_chosen(store, assignment) as (opened, name):
        attempt = attempt_named(opened, name, words)
        entered = opened.points(name).get(attempt.student.id, {})
        return f"{explanation.explain(attempt.record)}\n\n{_store_words(standing(attempt, entered))}"


def difference(first: str, second: str, store: Path | None, assignment: str | None) -> str:
    """Show two records side by side, and what differs in their sources; each is a file or an id in the store."""
    with ExitStack() as opened:
        one, other = (
            named(words, lambda: opened.enter_context(open_chosen(store, assignment))) for words in (first, second)
        )
    text = explanation.compare(one.record, other.record, headings=(first, second))
    if one.sources is None or other.sources is None or one.record.submission.sha256 == other.record.submission.sha256:
        return text
    try:
        lines = source_difference(one.sources, other.sources, (first, second))
    except Unreadable as error:
        lines = f"Their sources could not be compared: {error}"
    return f"{text}\n\n{lines}" if lines else text


def _store_words(line: Line) -> str:
    attempt = line.attempt
    when = attempt.handed_in.isoformat(timespec="minutes") if attempt.handed_in else "at an unknown time"
    days = attempt.days_late
    cost = f"which costs {share_words(attempt.penalty)}" if attempt.penalty else "without a penalty"
    late = f"{days_words(days)}, {cost}" if days else "on time"
    lines = [f"In the store: attempt {attempt.number} of {line.attempts}, handed in {when}, {late}."]
    for name, points in line.parts.items():
        comment = f" ({line.comments[name]})" if name in line.comments else ""
        lines.append(f"  {name}: {'unknown' if points is None else f'{points:g}'}{comment}")
    known = " + ".join(f"{points:g}" for points in line.parts.values() if points is not None) or "0"
    lines.append(f"  ({known}) x (1 - {attempt.penalty:g}) = {line.points:g}")
    if line.total is None:
        why = f"{', '.join(line.missing)} missing" if line.missing else "it was practice, or the machine failed"
        lines.append(f"  There is no total: {why}.")
    return "\n".join(lines)


def rerun(words: str, store: Path | None, assignment: str | None, *, engine: str | None, twice: bool) -> str:
    """Grade a student's stored files again on the testcases of their record."""

    def grade_again(folder: Path, record: Record) -> Record:
        tests = ",".join(test.name for test in record.tests)
        (again,) = grade_paths([folder], Choice(record.assignment, tests, engine or record.engine.name))
        return again

    with open_chosen(store, assignment) as (opened, name):
        return compare_again(opened, name, words, grade_again, twice=twice)


def compare_again(store: Store, assignment: str, words: str, grade: Grade, *, twice: bool) -> str:
    """Grade an attempt's stored files again, once or twice, and say what differs. The store is not changed."""
    attempt = attempt_named(store, assignment, words)
    with unpacked(store, attempt) as folder:
        runs = [_with_entered(store, attempt, grade(folder, attempt.record)) for _ in range(2 if twice else 1)]
    before = _with_entered(store, attempt, attempt.record)
    parts = [explanation.compare(before, runs[0], headings=(attempt.record.created[:19], "now"))]
    if twice:
        parts.append(explanation.compare(runs[0], runs[1], headings=("now", "second run now")))
    return "\n\n".join(parts)


@contextmanager
def unpacked(store: Store, attempt: Attempt) -> Iterator[Path]:
    """Unpack an attempt's files, as they were handed in, into a folder with the student's name. Raises UsageError if
    the store has no files, or files that cannot stand beside each other."""
    files = store.sources(attempt.submission)
    if not files:
        raise UsageError(
            f"The store has no files of {attempt.student.id}: the submission was imported from a record, or could not "
            "be read."
        )
    with TemporaryDirectory(prefix="grader-rerun-") as name:
        folder = Path(name) / (re.sub(r"[^\w.-]", "_", attempt.student.id)[:_MAX_FOLDER].strip(".") or "student")
        try:
            for file, content in files:
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        except (OSError, ValueError) as error:
            raise UsageError(f"The stored files of {attempt.student.id} cannot be unpacked: {error}.") from error
        yield folder
