"""Finds the Python program of a submission. A Python submission is a single file: other Python files are left out."""

from __future__ import annotations

from pathlib import Path

from grader.base.errors import UsageError
from grader.base.names import printable_name
from grader.base.paths import shown
from grader.course.assignment import Assignment
from grader.sandbox.walk import files_below, is_regular

SUFFIX = ".py"
_MAX_NOTES = 5


def find_python_main(path: Path, assignment: Assignment) -> tuple[Path, list[str]] | None:
    """The Python program at `path`, a file or a folder, and notes on what is left out; None if the submission is in
    another language. Raises UsageError for a language that the assignment does not accept, and for programs in two
    languages."""
    wanted = [name for name in assignment.submission.mains if name.endswith(SUFFIX)]
    if path.is_file():
        if wanted or path.suffix != SUFFIX:
            return (path, []) if path.suffix == SUFFIX else None
        raise UsageError(
            f"{shown(path)} is not a .cu file: the assignment {assignment.name} accepts only "
            f"{assignment.submission.main}; choose another assignment with --assignment."
        )
    programs = [file for file in files_below(path) if is_regular(file)] if wanted else []
    python = [file for file in programs if file.suffix == SUFFIX and not file.name.startswith(".")]
    named = [file for file in python if file.parent == path and file.name in wanted] or python
    cuda = any(file.suffix == ".cu" for file in programs)
    if not python or (cuda and all(file.name not in wanted for file in named)):
        return None  # perhaps a script next to a CUDA program
    if cuda:
        both = f"{assignment.submission.main} and {named[0].name}"
        raise UsageError(
            f"{shown(path)} holds a CUDA program and a Python program: give the file, or hand in only one of {both}."
        )
    if len(named) > 1:
        listed = ", ".join(sorted(printable_name(file.name) for file in named[:5]))
        raise UsageError(
            f"{shown(path)} holds {len(named)} Python files ({listed}) and none is called {wanted[0]}: rename the "
            "program."
        )
    left_out = [printable_name(file.name) for file in python if file != named[0]]
    return named[0], [f"{name} is left out: a Python submission is one file." for name in left_out[:_MAX_NOTES]]
