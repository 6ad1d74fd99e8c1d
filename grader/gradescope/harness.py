"""Runs in Gradescope's container: grades the files in ROOT/submission and always writes ROOT/results/results.json."""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from grader.base.errors import UsageError
from grader.base.names import spelled_out
from grader.base.paths import replacing
from grader.course.assignment import Assignment
from grader.records.record import Record
from grader.report import gradescope

_PLACES = "autograder|gradescope|home|opt|root|tmp|usr|var"
_PATH = re.compile(rf"(?<![\w.])/(?:{_PLACES})/(?:[^\s:;,'\"()/]+/)*([^\s:;,'\"()/]*)")
"""The path of a file in the container; the group is the file's name."""


def grade_there(
    root: Path, assignment: Assignment, grade: Callable[[Path], Record], hidden: Callable[[str], bool]
) -> dict[str, Any]:
    """Grade ROOT/submission with `grade` and write the results, whatever happens. Return what was written."""
    began = time.monotonic()
    kept = 0.0
    try:
        metadata = _metadata(root)
        kept = gradescope.kept_score(metadata)
        found = gradescope.refusal(metadata, assignment.gradescope)
        if found is None:
            record = grade(root / "submission")
            found = gradescope.results(record, assignment, hidden=hidden, seconds=time.monotonic() - began, kept=kept)
    except UsageError as error:
        found = gradescope.message(str(error), graded=True)
    except Exception as error:
        traceback.print_exc()  # what is printed there only the staff see
        found = gradescope.message(
            "The autograder failed. That is not your fault: please report this message to the course "
            f"staff. You keep the score of your last graded run. {type(error).__name__}: {error}",
            score=kept,
        )
    return write(root, found)


def write(root: Path, results: dict[str, Any]) -> dict[str, Any]:
    """Write results.json, whole or not at all and without paths of the container. Return what was written."""
    results = {key: _without_paths(value, root) for key, value in results.items()}
    folder = root / "results"
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "results.json") as file:
        file.write(json.dumps(results, indent=1, ensure_ascii=False).encode())
    return results


def _without_paths(value: Any, root: Path) -> Any:
    """`value` without paths of the container, which mean nothing to students: only the names of files stay."""
    if isinstance(value, str):
        value = value.replace(f"{root / 'submission'}/", "").replace(str(root / "submission"), "your submission")
        return _PATH.sub(r"\1", spelled_out(value))
    if isinstance(value, list):
        return [_without_paths(each, root) for each in value]
    return {key: _without_paths(each, root) for key, each in value.items()} if isinstance(value, dict) else value


def _metadata(root: Path) -> dict[str, Any]:
    """Read submission_metadata.json. If it is missing, as in a trial run, or malformed, assume no earlier runs."""
    try:
        found = json.loads((root / "submission_metadata.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("created_at"), str):
        return {"created_at": "2000-01-01T00:00:00+00:00", "previous_submissions": []}
    return found
