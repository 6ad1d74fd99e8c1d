"""A loop that never ends is named, not a loop inside or behind it, and mostly long before the time limit."""

import subprocess
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, build, execute
from emulator.tests.seeded_bugs import programs_in
from grader.programs.host_lines import with_lines
from grader.programs.trace import read_trace

SOURCE = HERE / "loops.cu"
ENDLESS = {
    line.rpartition("ENDLESS ")[2]: number
    for number, line in enumerate(SOURCE.read_text().splitlines(), 1)
    if "// ENDLESS " in line
}
ON_THE_HOST = "host_loop"
LIMIT_S = "30"


@pytest.mark.parametrize("name", [name for name in ENDLESS if name != ON_THE_HOST])
def test_a_kernels_endless_loop_is_named_long_before_the_limit(name: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE), name, folder=tmp_path, timeout_s=25, GRADER_EMULATOR_KERNEL_SECONDS=LIMIT_S)
    (found,) = done.diagnostics()
    assert (found["tool"], found["line"]) == ("sync", ENDLESS[name]), found
    assert "never ends" in found["message"]
    assert done.exit_code == 702 % 256


def test_an_endless_loop_of_the_host_is_named_at_the_limit(tmp_path: Path) -> None:
    program = build(SOURCE)
    with pytest.raises(subprocess.TimeoutExpired):
        execute(program, ON_THE_HOST, folder=tmp_path, timeout_s=2, GRADER_EMULATOR_KERNEL_SECONDS="0.5")
    (found,) = with_lines(read_trace(tmp_path / "trace.jsonl").findings, program)
    assert (found.kind, found.file) == ("host_endless", "loops.cu")
    assert found.line in range(ENDLESS[ON_THE_HOST], ENDLESS[ON_THE_HOST] + 4)


@pytest.mark.parametrize("name", [name for name in programs_in(SOURCE) if name.startswith("ends_")])
def test_a_loop_that_takes_long_ends(name: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE), name, folder=tmp_path, GRADER_EMULATOR_KERNEL_SECONDS=LIMIT_S)
    assert (done.exit_code, done.diagnostics()) == (0, [])
