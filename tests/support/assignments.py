"""The programs of every assignment of the course: model solutions, wrong ones and the template."""

import re
from pathlib import Path

from grader.commands.verify_assignment import NO_CAUSE as NO_CAUSE
from grader.course.assignment import assignment_names, load_assignment
from tests.support.course import ROOT

NAMES = assignment_names()
SAYS = re.compile(r"^(?://|#) expect: wrong_answer on most: (.+)$", re.MULTILINE)
"""Alternatives are separated by " | ": the emulator sees more than a GPU."""


def assignment_of(path: Path) -> str:
    """The assignment of a model or wrong solution: its folder's, but for backward_*.cu, which lies next to the forward
    programs that it includes, since a submission brings only its own folder."""
    folder = path.parent.parent.name if path.parent.name == "wrong" else path.parent.name
    other = f"{folder}_backward"
    return other if path.name.startswith("backward_") and other in NAMES else folder


def models(name: str) -> list[Path]:
    return sorted(path for path in ROOT.glob("reference/*/*.cu") if assignment_of(path) == name)


def wrongs(name: str) -> list[Path]:
    """Wrong solutions that say what the grader must find on most tests they fail; others have tests of their own."""
    return sorted(path for path in (ROOT / "reference" / name / "wrong").glob("*.cu") if SAYS.search(path.read_text()))


def template(name: str) -> Path:
    return ROOT / "student_template" / name / load_assignment(name).submission.main


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


WITH_WRONGS = [name for name in NAMES if wrongs(name)]
