"""Gradescope: the autograder's zip (`build_bundle`) and what runs inside its container (`grade_there`).

May import `report` and what is below it; how to grade is handed to it.
"""

from grader.gradescope.bundle import build_bundle
from grader.gradescope.harness import grade_there
