"""Faults of the grader or the machine: when a submission runs again, and when a lane rests or closes.

The rules are the same for a class, on this machine or on Slurm, and for the judge. A class's run ends at some time, so
a lane that keeps failing is closed; the judge goes on, so its lane rests, each time for longer.
"""

from __future__ import annotations

from grader.base.verdict import Fault
from grader.records.record import Record

MAX_TRIES, MAX_TRIES_ON_BROKEN_MACHINES = 2, 5
"""The number of times that a submission is run before a fault of the grader or the machine is final; more often if the
grader's own program did not run either. On Slurm, `cluster.retries` of the assignment says how often it runs again."""
FAULTS_TO_CLOSE_A_LANE = 3
REST_S, LONGEST_REST_S = 5.0, 60.0


def runs_again(record: Record, before: int, most: int = MAX_TRIES - 1) -> bool:
    """Whether a submission is run once more after this record. `before`: how often it has been run again already."""
    return record.infrastructure_failed and record.build.ok and before < most


def first_fault(record: Record) -> str:
    """The reason of the first test that failed through a fault of the grader or the machine."""
    return next(test.reason for test in record.tests if test.fault in (Fault.GRADER, Fault.MACHINE))


def rest_s(broken_in_a_row: int) -> float:
    """How long a lane rests on which the grader's own program has failed so often in a row."""
    return min(LONGEST_REST_S, REST_S * 2.0 ** (broken_in_a_row - 1))
