"""Names the conditions of a grading. Only results under equal conditions can be compared.

Conditions have three parts. The first, `measured`, names what was run and how it was judged: testcases, engine, and the
rules without those that only decide points. The second names all rules; together they are `rules`. Under other `rules`
with the same `measured`, points follow from the stored measurements (see `records.rescore`). The last part is the
grader that measured: results of another one stand until somebody asks for them to be graded again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from grader.base.identity import identity
from grader.operators import Shape
from grader.records.record import Record

_DIGITS = 12


class Conditions(str):
    """The conditions of a grading, with dots between their parts. Older stores hold conditions of another form, which
    equal none of this form."""

    @property
    def measured(self) -> str:
        return self.partition(".")[0]

    @property
    def rules(self) -> str:
        return self.rpartition(".")[0]

    @property
    def grader(self) -> str:
        return self.rpartition(".")[2]


def conditions_of(record: Record) -> Conditions:
    """The conditions of a record."""
    tests = [(test.name, test.shape) for test in record.tests]
    return conditions(
        record.measured_sha256, record.assignment_sha256, tests, record.engine.name, record.grader.package_sha256
    )


def conditions(
    measured_sha256: str, rules_sha256: str, tests: Sequence[tuple[str, Shape]], engine: str, grader_sha256: str = ""
) -> Conditions:
    """Like `conditions_of`, before there is a record; the grader is then this one. A testcase is identified by its name
    and shape: if either changes, it counts as a different testcase."""
    cases = [f"{name} {json.dumps(shape)}" for name, shape in tests]
    digest = hashlib.sha256("\0".join([measured_sha256, engine, *cases]).encode()).hexdigest()
    grader = grader_sha256 or identity().package_sha256
    return Conditions(f"{engine}-{digest[:16]}.{rules_sha256[:_DIGITS]}.{grader[:_DIGITS]}")
