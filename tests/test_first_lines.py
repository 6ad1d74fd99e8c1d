"""`grader check` names the cause of a failure and the mistake's own line in the first five lines that it prints.

Two of the programs are named at the line where the wrong value arises, not at the mistake's own:
one_key_v_read_before_k errs in line 61, where V is read before K, and one_key_first_key_twice in line 29, where the
loop begins.

Each program in fixtures/first_lines has one mistake, with its line and words of its cause in EXPECTED: those in the
folder itself are for hw4, others for the assignment of their folder, whose wrong solutions are expected there, too.
The rows with a folder are the 30 seeded mistakes of docs/wrong-kernels.md but one, of which the cause is not named.
With GRADER_TEST_EVERYTHING=1 all of them are checked: minutes of CPU, and one of waiting for bfs/queue_never_emptied.
"""

import os
import re
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import grader
from tests.support.course import ROOT

PROGRAMS = ROOT / "tests/fixtures/first_lines"
FIRST_LINES, MOST_LINES = 5, 25
CHECKED = {"one_key_copy_without_sizeof", "scan/sums_in_short", "one_key_state_carried_over_rows"}
"""What is checked unless GRADER_TEST_EVERYTHING=1."""
EXPECTED = {
    name.strip(): (int(line), words.strip())
    for name, line, words in (
        row.split("|") for row in (PROGRAMS / "EXPECTED").read_text(encoding="utf-8").splitlines()
    )
}


def test_every_program_is_expected_to_say_something() -> None:
    assert {str(path.relative_to(PROGRAMS).with_suffix("")) for path in PROGRAMS.rglob("*.cu")} <= set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED if os.environ.get("GRADER_TEST_EVERYTHING") == "1" else sorted(CHECKED))
def test_cause_and_line_are_in_the_first_five_lines(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name not in CHECKED:
        monkeypatch.delenv("GRADER_REPAIRS")  # as a student checks
    line, words = EXPECTED[name]
    own, _, mistake = name.rpartition("/")
    (source,) = [*PROGRAMS.glob(f"{name}.cu"), *ROOT.glob(f"reference/{own}/wrong/{mistake}.cu")]
    program = tmp_path / f"{own or 'hw4'}.cu"  # the name that students use
    shutil.copyfile(source, program)
    said = grader("check", program, "--engine", "emulator", "--tests", "public" if own else "s01,s02,s04")
    assert said.code == 1 or "It passes, but" in said.out
    lines = said.out.splitlines()
    first = " ".join(" ".join(lines[:FIRST_LINES]).split())
    assert words in first
    named = {int(number) for number in re.findall(r"(?:\.cu:|\blines? |\band )(\d+)", first)}
    assert named & {line - 1, line, line + 1}, first
    assert len(lines) <= MOST_LINES
