"""A few attacks in Python and an honest program; `make redteam` and `make honest` try all."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.commands import submissions
from grader.programs.engine import select_engine
from tests.honest.__main__ import PYTHON, complaints, hand_in
from tests.redteam.__main__ import read_attacks, run_all
from tests.redteam.arena import SECRET

HOST_ARITHMETIC = """
import math, sys
import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy

@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)

rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)
weights = [[math.e ** (float(str(value)) - 100) for value in row] for row in x]
sums = [sum(row) for row in weights]
result = np.array([[weight / total for weight in row] for row, total in zip(weights, sums)], np.float32)
y = empty(x.shape)
copy[(triton.cdiv(x.size, 256),)](from_numpy(result), y, x.size, BLOCK=256)
to_numpy(y).tofile(sys.argv[2])
"""
"""Softmax in Python's own numbers, which come from text."""
ATTACKS = [
    f"python/{name}"
    for name in ("after_the_end", "forks", "kernels_in_the_cache", "laundered_input", "memory_of_an_array",
                 "memory_of_the_process", "results_as_arguments")
]  # fmt: skip


def test_attacks_in_python_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", SECRET)
    tmp_path.chmod(0o755)
    attacks = [attack for attack in read_attacks() if attack.name in ATTACKS]
    results = run_all(attacks, select_engine("emulator", "sm_80"), tmp_path)
    assert [(result.attack.name, result.bypasses) for result in results] == [(name, ()) for name in ATTACKS]


def test_a_program_whose_kernel_only_copies_what_python_computed_fails_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "softmax.py").write_text(HOST_ARITHMETIC)
    [record] = submissions.grade_paths([tmp_path], assignment="softmax", tests="s06", engine="emulator", json=None)
    [test] = record.tests
    assert test.verdict == "runtime_error" and "softmax.py:19 copies 7,000 values to the device" in test.reason


def test_an_honest_program_in_python_passes_without_a_flag(tmp_path: Path) -> None:
    folder = hand_in(PYTHON / "softmax/device_print.py", tmp_path)
    [record] = submissions.grade_paths([folder], assignment="softmax", tests="s02", engine="emulator", json=None)
    assert complaints(record) == []
