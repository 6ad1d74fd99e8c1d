"""What is made of a Python program that may have computed on the processor."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.grading import provenance
from grader.grading.provenance import first_run
from grader.programs.run import Recording
from grader.programs.submission import read_submission
from grader.programs.trace import Provenance, Trace, Unexplained
from grader.python.provenance import CUT
from grader.timing.evidence import too_many

NOTHING = Unexplained(0, 0)
ASSIGNMENT = load_assignment("softmax")
CASES = load_suite(ASSIGNMENT.testcases_file).cases
CASE, OF_TWO_ROWS = CASES["s08"], CASES["s07"]


def entry(kind: str, content: bytes = b"", **more: object) -> bytes:
    heading = {"kind": kind, "type": "", "size": 1, "bytes": len(content), "omitted": False, "numbers": [], "line": 2}
    return json.dumps({**heading, **more}).encode() + b"\n" + content


A, B, C = (
    entry("written", np.random.default_rng(seed).normal(size=90_000).astype(np.float32).tobytes()) for seed in (1, 2, 3)
)
"""Records of programs that write an output which does not come from the device."""
LARGE = entry("downloads", bytes=1 << 30, omitted=True)
ONE, TWO = (LARGE + entry("arguments", numbers=[number]) for number in (70_001, 90_002))
"""Records of programs that copy much."""
FAILED = b"failed"


@pytest.mark.parametrize(
    ("count", "records", "says"),
    [
        (32, [], None),  # so few may be a scale and sizes
        (90_000, [A, A], None),  # a table
        (90_000, [A, B, A, B, A, B], "softmax.py:2 writes 90,000 values to the output that were not copied"),
        (90_000, [A, B, C], "not do the same in every run"),
        (90_000, [A, B, A, B, A, C], "not do the same in every run"),
        (90_000, [A, B, b""], "not do the same in every run"),
        (90_000, [A, FAILED], "it did not end normally"),
        (90_000, [CUT], "it launches too many kernels"),
        (90_000, [A, b""], "depends on the input's values, or on chance"),
        (90_000, [LARGE], "it copies too much"),
    ],
)
def test_values_count_as_computed_if_they_change_with_the_input_and_with_nothing_else(
    count: int, records: list[bytes], says: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compared(Provenance(NOTHING, NOTHING, Unexplained(count, 2)), records, tmp_path, monkeypatch)
    assert (says or "") in (found.sentence if found is not None else "") and (found is None) == (says is None)
    assert found is None or found.proved == ("writes" in found.sentence)


@pytest.mark.parametrize(
    ("records", "says"),
    [([ONE, ONE], ""), ([ONE, TWO], "it copies too much"), ([LARGE + A, LARGE + B], "it copies too much")],
)
def test_what_has_room_is_compared_even_if_an_array_is_too_large(
    records: list[bytes], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = compared(Provenance(NOTHING, Unexplained(999, 2), NOTHING), records, tmp_path, monkeypatch)
    assert (found is not None and not found.proved and says in found.sentence) == bool(says)


def compared(
    counts: Provenance, records: list[bytes], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> provenance.HostWork | None:
    """What is made of runs with these records; the first is that of the graded run."""
    given = folder / "given"
    given.write_bytes(np.random.default_rng(4).normal(size=CASE.input_bytes // 4).astype(np.float32).tobytes())
    left = iter(records)

    def write(recording: Recording, record: bytes) -> None:
        recording.file.seek(0, 2)
        recording.file.write(record)

    @contextlib.contextmanager
    def run_again(*args: Any, recording: Recording, **limits: object) -> Iterator[SimpleNamespace]:
        content = args[2].read_bytes()
        assert len(content) == CASE.input_bytes and content[:8] == given.read_bytes()[:8]
        record = next(left)
        write(recording, record)
        yield SimpleNamespace(outcome=SimpleNamespace(exit_code=int(record == FAILED)))

    monkeypatch.setattr(provenance, "run_program", run_again)
    (folder / "softmax.py").write_text("import triton\ny.tofile(name)\n")
    submission = read_submission(folder / "softmax.py", ASSIGNMENT)
    engine: Any = None
    with first_run() as first:
        write(first.recording, next(left, b""))
        first.keep(Trace(provenances=(counts,)), CASE, given)
        found = first.host_work(engine, folder, CASE, submission, wall_s=1, limits=ASSIGNMENT.limits)
    assert next(left, None) is None
    return found


def test_with_few_rows_a_few_numbers_are_too_many() -> None:
    """The maximum and the sum of each row are most of the work."""
    numbers = Provenance(NOTHING, Unexplained(8, 3), NOTHING)
    assert too_many(numbers, OF_TWO_ROWS) and not too_many(numbers, CASE)
