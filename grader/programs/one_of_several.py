"""Reads one of several submissions: whatever its files are, the others are read."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.course.assignment import Assignment
from grader.programs.submission import Submission, read_submission, unreadable
from grader.sandbox.walk import files_below


@dataclass(frozen=True)
class Reading:
    """A submission as it was read. If it could not be read, `problem` says why and the submission has no files."""

    submission: Submission
    problem: str = ""


def read_one_of_several(student: str, path: Path, assignment: Assignment, *, shared_folder: bool) -> Reading:
    """Read the submission of `student` at `path`. Raises MachineFault if it cannot be read by nobody's fault, as when a
    disk fails or the files belong to another account."""
    try:
        submission = read_submission(path, assignment, shared_folder=shared_folder)
        return Reading(replace(submission, id=student) if student else submission)
    except (MachineFault, GraderFault):
        raise
    except UsageError as error:
        problem = str(error)
        if isinstance(error.__cause__, OSError) and not _is_locked(path):
            raise MachineFault(problem) from error
    except Exception as error:  # a name or a folder tree that Python cannot read
        problem = f"{path.name!r} cannot be read as a submission: {error}."
    return Reading(unreadable(student, path, problem), problem)


def _is_locked(path: Path) -> bool:
    """Whether a file or folder of this account denies reading to its owner: an archive restores the permissions that
    the submission's author gave it."""
    files = files_below(path) if path.is_dir() else ()
    if _denies(path):
        return True
    looked = {path}
    for file in files:
        above = {file.parent} - looked
        if any(_denies(each) for each in (file, *above)):
            return True
        looked |= above
    return False


def _denies(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    needed = stat.S_IRUSR | (stat.S_IXUSR if stat.S_ISDIR(found.st_mode) else 0)
    return found.st_uid == os.geteuid() and found.st_mode & needed != needed
