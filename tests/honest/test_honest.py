"""Honest programs pass, however unusual: a few here, all with `make honest`."""

from __future__ import annotations

from pathlib import Path

import pytest

from grader.commands import submissions
from tests.honest.__main__ import complaints, hand_in, variants

QUICK = ["managed_memory", "several_files"]


@pytest.mark.parametrize("name", QUICK)
def test_an_honest_variant_passes_without_a_flag(name: str, tmp_path: Path) -> None:
    variant = next(path for path in variants() if path.stem == name)
    folder = hand_in(variant, tmp_path)
    [record] = submissions.grade_paths(
        [folder], assignment="hw4", tests="s01,s02", engine="emulator", json=None, quick=True
    )
    assert record.closer_look is not None
    assert complaints(record) == []
