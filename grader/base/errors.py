"""The errors that reach a person. Each message is a whole sentence: what, where, expected, found, what to do.

A student's failure is not an error here: it is a verdict in the record (see `grader.base.verdict`).
"""

from __future__ import annotations

from cudaemu.errors import MachineFault as MachineFault  # exit code 1; retried where that can help, then reported
from cudaemu.errors import UsageError as UsageError  # exit code 2


class GraderFault(Exception):
    """The grader or its set-up failed, not because of the submission. Exit code 1."""
