"""Gradescope: the autograder's zip (`build_bundle`) and what runs inside its container (`grade_there`).

May import `report` and the packages below it; its caller passes the function that grades.
"""

from grader.gradescope.bundle import build_bundle
from grader.gradescope.harness import grade_there
