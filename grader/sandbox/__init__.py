"""Running programs of unknown intent; see `supervise` for the theory of operation."""

from grader.sandbox.build_tools import runner
from grader.sandbox.job import Job, Limits, Outcome, apart
from grader.sandbox.supervise import confinement, require, run, run_attached, tool_problem

__all__ = [
    "Job",
    "Limits",
    "Outcome",
    "apart",
    "confinement",
    "require",
    "run",
    "run_attached",
    "runner",
    "tool_problem",
]
