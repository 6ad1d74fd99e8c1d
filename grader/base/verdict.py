"""The verdicts on a test, and whose fault a failure is. Only the student's faults cost points."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """The party responsible for a test that did not pass."""

    STUDENT = "student"
    GRADER = "grader"
    MACHINE = "machine"


class Verdict(StrEnum):
    """The outcome of one testcase."""

    PASSED = "passed"
    WRONG_ANSWER = "wrong_answer"
    TIME_LIMIT = "time_limit"
    MEMORY_LIMIT = "memory_limit"
    RUNTIME_ERROR = "runtime_error"
    NO_OUTPUT = "no_output"
    COMPILE_ERROR = "compile_error"
    NOT_RUN = "not_run"
    GRADER_ERROR = "grader_error"

    @property
    def words(self) -> str:
        """The verdict as people read it."""
        return self.value.replace("_", " ")


STUDENT_VERDICTS = frozenset(
    {
        Verdict.WRONG_ANSWER,
        Verdict.TIME_LIMIT,
        Verdict.MEMORY_LIMIT,
        Verdict.RUNTIME_ERROR,
        Verdict.NO_OUTPUT,
        Verdict.COMPILE_ERROR,
    }
)
"""Verdicts that are always the submission's fault."""
