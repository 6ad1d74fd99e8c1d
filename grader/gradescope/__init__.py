"""Gradescope: the autograder's zip (`build_bundle`) and what runs inside its container (`grade_there`).

May import `report` and the packages below it; it gets the function that grades as an argument.
"""

from grader.gradescope.bundle import build_bundle
from grader.gradescope.harness import grade_there
