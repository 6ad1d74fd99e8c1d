"""Whatever a race looks like, the sentence on the cause names it: both lines, the barrier, and no other fault."""

import re
from pathlib import Path

import pytest

from emulator.tests.programs import HERE
from emulator.tests.seeded_bugs import programs_in, run
from grader.programs.trace import read_trace
from tests.support.causes import cause_of

RACES = [(source, name) for source in sorted((HERE / "races").glob("*.cu")) for name in programs_in(source)]


def lines_of(source: Path, name: str) -> set[str]:
    """The lines marked as this program's, as file:line."""
    lines = source.read_text().splitlines()
    return {f"{source.name}:{number}" for number, line in enumerate(lines, 1) if line.endswith(f"// RACE {name}")}


def cause(source: Path, name: str, folder: Path) -> str:
    run(source, name, folder)
    found = read_trace(folder / "trace.jsonl").findings
    return cause_of(found, [(str(source), source.read_bytes())]).replace(f"{source.parent}/", "")


@pytest.mark.parametrize(("source", "name"), RACES, ids=[name for _, name in RACES])
def test_the_cause_of_a_racing_program_is_the_race_with_both_its_lines(source: Path, name: str, tmp_path: Path) -> None:
    said = cause(source, name, tmp_path)
    assert said.startswith("Race: "), said
    accesses, _, _advice = said.partition("put __syncthreads()")
    named = set(re.findall(rf"{source.stem}\.cu:\d+", accesses))
    marked = lines_of(source, name)
    assert named <= marked, said
    assert len(named) == 2 or len(marked) == 1, said
    assert "__syncwarp" not in said
