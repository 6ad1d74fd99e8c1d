"""Grading a whole class; `run` has the theory of operation."""

from grader.batch.handins import Found, find_class, is_class
from grader.batch.policy import Policy, Which
from grader.batch.run import Outcome, grade_class
from grader.batch.setup import Setup

__all__ = ["Found", "Outcome", "Policy", "Setup", "Which", "find_class", "grade_class", "is_class"]
