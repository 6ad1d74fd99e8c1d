"""The fast model solutions, as far as they go without a GPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.command_line import graded
from tests.support.course import ROOT

# From 512 rows on, as s06 has, hopper.cu uses Hopper's instructions. Building it takes 30 s of CPU.
CASES = [("tensor_cores", "sm_80", "s01")]
if os.environ.get("GRADER_TEST_EVERYTHING") == "1":
    CASES.append(("hopper", "sm_90a", "s06"))


@pytest.mark.parametrize(("name", "arch", "sample"), CASES)
def test_a_model_is_as_exact_as_float32_on_the_emulator(name: str, arch: str, sample: str, tmp_path: Path) -> None:
    record = graded(ROOT / f"reference/hw4/{name}.cu", tmp_path, sample, arch)
    assert record["engine"]["device"] == f"emulated {arch}"
    for test in record["tests"]:
        assert test["verdict"] == "passed", test["reason"]
        assert test["max_error"] < 1e-5
