"""The fast model solutions, as far as they go without a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import graded
from tests.support.course import ROOT


@pytest.mark.parametrize("name", ["tensor_cores", "hopper"])
def test_a_model_is_as_exact_as_float32_on_the_emulator(name: str, tmp_path: Path) -> None:
    for test in graded(ROOT / f"reference/hw4/{name}.cu", tmp_path, "s01")["tests"]:
        assert test["verdict"] == "passed", test["reason"]
        assert test["max_error"] < 1e-5
