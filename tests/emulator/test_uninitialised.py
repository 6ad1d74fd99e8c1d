"""Forty uninitialised reads are found by each way of looking: --sanitize init, --sanitize all, and check alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from grader.grading.closer_look import in_a_right_program
from grader.programs.trace import read_trace
from grader.sanitizers import cause_of
from tests.emulator.programs import HERE, build, execute

SOURCE = HERE / "uninitialised" / "reads.cu"
LINES = {
    found[1]: number
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
    if (found := re.match(r"READ\((\w+)", line))
}


def test_there_are_forty() -> None:
    assert len(LINES) == 40


@pytest.mark.parametrize("name", LINES)
def test_an_uninitialised_read_is_found_by_init_by_all_and_by_check_alone(name: str, tmp_path: Path) -> None:
    program = build(SOURCE, watch=True)
    everything = execute(program, name, folder=tmp_path)
    cause = cause_of(in_a_right_program(read_trace(tmp_path / "trace.jsonl").findings))
    alone = execute(program, name, folder=tmp_path, GRADER_EMULATOR_CHECKS="memory,sync,init")
    assert everything.exit_code == 0
    assert {found["line"] for found in alone.diagnostics()} == {LINES[name]}
    assert alone.diagnostics() == everything.diagnostics("init")
    assert f"reads.cu:{LINES[name]}: " in cause and " read " in cause
