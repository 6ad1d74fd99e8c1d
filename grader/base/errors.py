"""The errors that reach a person. Each message is a whole sentence: what, where, expected, found, what to do.

A student's failure is not an error here: it is a verdict in the record (see `grader.base.verdict`).
"""

from __future__ import annotations


class UsageError(Exception):
    """The user's error: a bad argument, file or configuration. Exit code 2."""


class GraderFault(Exception):
    """The grader or its set-up failed, not because of the submission. Exit code 1."""


class MachineFault(Exception):
    """The machine failed: disk full, GPU lost, no compiler. Retried where that can help, then reported. Exit code 1."""
