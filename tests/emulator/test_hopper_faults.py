"""Mistakes with Hopper's asynchronous instructions are found at their line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.emulator.programs import HERE, build, execute

SOURCE = HERE / "hopper_faults.cu"
LINES = SOURCE.read_text().splitlines()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wrong_bytes", "256 more bytes than its copies bring"),
        ("early", "while the bulk copy to it"),
        ("late", "while the bulk copy to it"),
        ("peer_left", "block 0 of the cluster, which has ended"),
    ],
)
def test_a_mistake_is_found_at_its_line(name: str, words: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE, target="sm_90a"), name, folder=tmp_path)
    found = next(d for d in done.diagnostics() if words in d["message"])
    assert name in LINES[found["line"] - 1].partition("//")[2].split()
