"""Grading a whole class; `class_run` has the theory of operation."""

from grader.classes.batch.class_folder import Found, find_class, is_class
from grader.classes.batch.class_run import Outcome, grade_class
from grader.classes.batch.policy import Policy, Which
