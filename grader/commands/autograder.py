"""`grader gradescope`: builds the autograder to upload, and grades inside its container."""

from __future__ import annotations

from pathlib import Path

from grader.base.paths import shown
from grader.classes.batch import view
from grader.commands.choice import Choice
from grader.commands.submissions import grade_paths
from grader.course.assignment import chosen_assignment
from grader.course.coherence import suite_of
from grader.gradescope import build_bundle, grade_there
from grader.gradescope.harness import write
from grader.records.record import Record
from grader.report.gradescope import message


def build(target: Path, assignment: str | None, *, tests: str, engine: str, secret: Path | None) -> str:
    """Write the zip to upload as a Gradescope autograder."""
    names = build_bundle(target, chosen_assignment(assignment), tests=tests, engine=engine, secret=secret)
    words = f"{shown(target)}: {len(names)} files, for --tests {tests} on --engine {engine}."
    return words + (" It holds the secret that determines the hidden testcases: do not publish it." if secret else "")


def grade(root: Path, assignment: str | None, *, tests: str, engine: str) -> str:
    """Grade inside Gradescope's container, and write results.json whatever happens."""
    try:
        rules = chosen_assignment(assignment)
        suite = suite_of(rules)

        def graded(path: Path) -> Record:
            (record,) = grade_paths([path], Choice(rules.name, tests, engine))
            return record

        found = grade_there(root, rules, graded, lambda name: name in suite.cases and suite.cases[name].hidden)
    except Exception as error:
        found = message(f"The autograder failed. That is not your fault: please report it to the course staff. {error}")
        write(root, found)
    return f"score {found['score']:g}: {view.first_line(found['output'])}"
