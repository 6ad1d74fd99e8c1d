"""Names the conditions of a grading. Only results under equal conditions can be compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from grader.operators import Shape
from grader.records.record import SCHEMA, Record


def conditions_of(record: Record) -> str:
    """The conditions of a record: the rules as applied, the testcases, the engine."""
    tests = [(test.name, test.shape) for test in record.tests]
    return conditions(record.assignment_sha256, tests, record.engine.name)


def conditions(rules_sha256: str, tests: Sequence[tuple[str, Shape]], engine: str) -> str:
    """Like `conditions_of`, before there is a record. A testcase is identified by its name and shape: if either
    changes, it counts as a different testcase."""
    cases = [f"{name} {json.dumps(shape)}" for name, shape in tests]
    digest = hashlib.sha256("\0".join([SCHEMA, rules_sha256, engine, *cases]).encode()).hexdigest()
    return f"{engine}-{digest[:16]}"
