"""Finds the submissions in a class's folder: student, path and time. It reads file names and mtimes. To
distinguish a class from one submission of several files, it also looks for the files that have a main function.
Mistakes inside a submission are reported when it is read for grading."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.names import printable_name, student_id
from grader.base.paths import shown
from grader.course.assignment import Assignment
from grader.programs.submission import MAKEFILES, is_program
from grader.sandbox import archive
from grader.sandbox.walk import files_below
from grader.store.database import Store

_LOOKED_AT_FILES = 2000
_MOODLE = re.compile(r"(?P<name>[^_]+)_\d+_assignsubmission_\w*")
"""The name of a folder in a download of all submissions from Moodle: "Ada Lovelace_1234_assignsubmission_file"."""


@dataclass(frozen=True)
class Found:
    """One submission of a class. `handed_in` is the newest mtime of its files. `name` is the student's name, where the
    name of the folder has it, as Moodle's do."""

    student: str
    path: Path
    handed_in: datetime
    name: str = ""


def is_class(path: Path, assignment: Assignment) -> bool:
    """Whether `path` is the folder of a class rather than one submission; `grader grade --help` states the rule."""
    if not path.is_dir():
        return False
    entries = _entries(path)
    programs = [entry for entry in entries if entry.suffix == ".cu" and entry.is_file() and not entry.is_symlink()]
    if not programs:
        return sum(_holds_program(entry) if entry.is_dir() else _is_packed(entry) for entry in entries) > 1
    if len(programs) == 1 or any((path / name).is_file() for name in MAKEFILES):
        return False
    # A program that cannot be read counts as a submission; grading it reports the problem.
    names = [entry.name for entry in programs]
    return assignment.submission.main not in names and all(is_program(path, name, unread=True) for name in names)


def refuse_strangers(paths: Sequence[Path], assignment: Assignment, store: Store) -> None:
    """Raise UsageError if a folder only looks like a class, and what the store holds came from other folders: it may be
    one student's hand-in with subfolders named after classmates, who would get attempts of hers."""
    known = {Path(path).parent.name for path in store.paths(assignment.name)}
    course = assignment.reference_folder.resolve()
    for path in (each for each in paths if each.resolve() != course):
        if known and is_class(path, assignment) and path.resolve().name not in known:
            raise UsageError(
                f"{shown(path)} looks like a class, but {shown(store.path)} holds the results of another folder. If it "
                "is a class's, add --class; if it is one student's hand-in, it should hold one program."
            )


def find_class(folder: Path, assignment: Assignment) -> tuple[list[Found], list[str]]:
    """Return the submissions of a class, by name, and notes on files that were left out. Raises UsageError when there
    are none."""
    found, notes = [], []
    suffixes = {Path(name).suffix for name in assignment.submission.mains}
    for entry in _entries(folder):
        if entry.is_symlink():  # a link could submit a classmate's work, or make messages quote a private file
            notes.append(f"{printable_name(entry.name)} is left out: it is a link; put the files themselves there.")
        elif entry.is_dir() or (entry.is_file() and (entry.suffix in suffixes or _is_any_archive(entry.name))):
            found.append(describe(entry, assignment))
    if not found:
        raise UsageError(f"{shown(folder)} holds no submissions: expected a folder or a .cu file per student in it.")
    if (pattern := assignment.submission.id_pattern) is not None:
        other = [printable_name(one.path.name) for one in found if _id_by_pattern(one.path, pattern) is None]
        if other:
            notes.append(f"Names that do not match submission.id_pattern ({listed(other)}): the whole name is the id.")
    return found, notes


def listed(names: Sequence[str]) -> str:
    """ "2: ann, bob", or the first ten of more."""
    return f"{len(names)}: {', '.join(names[:10])}{' and others' * (len(names) > 10)}"


def describe(path: Path, assignment: Assignment) -> Found:
    """Describe the submission at `path`: the student by its name, the time by its files."""
    named = Path(os.path.abspath(path))  # noqa: PTH100 (resolve() would follow a link, but the link's own name counts)
    if named.is_file() and named.name in assignment.submission.mains:
        named = named.parent  # alice/main.cu belongs to alice
    student = archive.without_suffix(named.stem if path.is_file() and named.suffix in (".cu", ".py") else named.name)
    if (pattern := assignment.submission.id_pattern) is not None:
        student = _id_by_pattern(named, pattern) or student
    named_as = _MOODLE.fullmatch(archive.without_suffix(named.name))
    return Found(student_id(student), path, _time(_newest(path)), printable_name(named_as["name"]) if named_as else "")


def _is_any_archive(name: str) -> bool:
    return archive.is_archive(name) or archive.is_foreign(name)


def _time(seconds: float) -> datetime:
    """A file's time. A time outside the calendar, as some unpackers write it, becomes the Epoch."""
    try:
        return datetime.fromtimestamp(seconds, UTC).replace(microsecond=0)
    except (OSError, OverflowError, ValueError):
        return datetime.fromtimestamp(0, UTC)


def _id_by_pattern(path: Path, pattern: str) -> str | None:
    match = re.fullmatch(pattern, path.stem if path.suffix in (".cu", ".py") else archive.without_suffix(path.name))
    return (match.group("id") or None) if match else None


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith((".", "__MACOSX")))
    except NotADirectoryError as error:
        raise UsageError(f"{shown(folder)} is a file, expected the folder that holds a class's submissions.") from error
    except FileNotFoundError as error:
        raise UsageError(
            f"{shown(folder)} does not exist: give the folder that holds a class's submissions."
        ) from error
    except OSError as error:
        raise UsageError(f"{shown(folder)} cannot be read: {error.strerror}; check its permissions.") from error


def _files(path: Path) -> Iterator[Path]:
    """The first files of a submission, up to a limit: enough to see whether it holds a program."""
    if path.is_file():
        yield path
        return
    yield from itertools.islice(files_below(path), _LOOKED_AT_FILES)


def _holds_program(folder: Path) -> bool:
    return any(file.suffix in (".cu", ".py") or archive.is_archive(file.name) for file in _files(folder))


def _is_packed(entry: Path) -> bool:
    return entry.is_file() and not entry.is_symlink() and archive.is_archive(entry.name)


def _newest(path: Path) -> float:
    times = []
    for file in _files(path):
        try:
            times.append(file.lstat().st_mtime)
        except OSError:
            continue
    try:
        return max(times) if times else path.stat().st_mtime
    except OSError:
        return 0.0
