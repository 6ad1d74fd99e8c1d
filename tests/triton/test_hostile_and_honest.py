"""A few attacks in Python and an honest program; `make redteam` and `make honest` try all."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.commands import submissions
from grader.programs.engine import select_engine
from tests.honest.__main__ import PYTHON, complaints, hand_in
from tests.redteam.__main__ import read_attacks, run_all
from tests.redteam.arena import SECRET

ATTACKS = ["python/at_exit", "python/forks", "python/links_in_the_cache"]


def test_attacks_in_python_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADER_SECRET", SECRET)
    tmp_path.chmod(0o755)
    attacks = [attack for attack in read_attacks() if attack.name in ATTACKS]
    results = run_all(attacks, select_engine("emulator", "sm_80"), tmp_path)
    assert [(result.attack.name, result.bypasses) for result in results] == [(name, ()) for name in ATTACKS]


def test_an_honest_program_in_python_passes_without_a_flag(tmp_path: Path) -> None:
    folder = hand_in(PYTHON / "softmax/device_print.py", tmp_path)
    [record] = submissions.grade_paths([folder], assignment="softmax", tests="s02", engine="emulator", json=None)
    assert complaints(record) == []
