"""The record of a Python program's run: how its process writes it, and how the grader reads it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from grader.grading.run_record import read_record
from grader.programs.run import open_recording
from grader.python import provenance as python_provenance
from grader.python.provenance import Follower


@pytest.mark.parametrize(
    "text",
    [
        b"x",
        b"{}\n",
        b"[" * 9999,
        b'{"kind":"uploads","type":"","size":3,"bytes":0,"omitted":false,"numbers":[],"line":1}\n',
        b'{"kind":"downloads","type":"zz32","size":4,"bytes":0,"omitted":false,"numbers":[],"line":1}\n',
        b'{"kind":"downloads","type":"fp32","size":2,"bytes":0,"omitted":false,"numbers":[],"line":1}\n',
        b'{"kind":"arguments","type":"","size":1,"bytes":0,"omitted":false,"numbers":[' + b"9" * 400 + b'],"line":1}\n',
        b'{"kind":"uploads","type":"","size":4,"bytes":3,"omitted":false,"numbers":[],"line":1}\n123',
        b'{"kind":"uploads","type":"","size":Infinity,"bytes":0,"omitted":false,"numbers":[],"line":1}\n',
        b'{"kind":"arguments","type":"","size":1,"bytes":0,"omitted":false,"numbers":[["int",5]],"line":1}\n',
        b'{"kind":"uploads","type":"","size":4,"bytes":-8,"omitted":false,"numbers":[],"line":1}\n',
        b'{"kind":"uploads","type":"","size":4,"bytes":1000000000000,"omitted":false,"numbers":[],"line":1}\n',
    ],
)
def test_a_record_that_a_program_has_written_itself_is_no_record(text: bytes) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"[]\n" + text)
        assert read_record(file) is None


def test_a_record_becomes_no_larger_than_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are left out first, and a record without launches is none."""
    monkeypatch.setattr(python_provenance, "MOST_RECORDED_BYTES", 6000)
    monkeypatch.setattr(python_provenance, "OF_LAUNCHES_BYTES", 1000)
    for launches, omitted in ((1, 200), (100, None)):
        with open_recording("7") as recording:
            follower = Follower(tmp_path / "input", tmp_path / "output", lambda: 1, recording.file.fileno())
            follower.downloaded(np.zeros(1200, np.float32))
            follower.downloaded(np.zeros(50, np.float32))
            for number in range(launches):
                follower.launched([number])
            record = read_record(recording.file)
            assert (record[1].omitted if record else None) == omitted
            assert recording.file.seek(0, 2) < 6000


def test_a_record_that_cannot_be_written_ends_the_record_and_not_the_program(tmp_path: Path) -> None:
    follower = Follower(tmp_path / "input", tmp_path / "output", lambda: 1, os.open(os.devnull, os.O_RDONLY))
    assert follower.timed(2.0) == 2.0


def test_a_run_for_comparison_is_told_the_times_of_the_first(tmp_path: Path) -> None:
    times = [0.5, 0.25]
    for given, seen in (((), [1.0, 2.0, 3.0]), (times, [0.5, 0.25, 3.0])):
        with open_recording("7", given) as recording:
            follower = Follower(tmp_path / "input", tmp_path / "output", lambda: 1, recording.file.fileno())
            assert [follower.timed(ms) for ms in (1.0, 2.0, 3.0)] == seen
            record = read_record(recording.file)
        assert record is not None and [each.numbers for each in record] == [(ms,) for ms in seen]
