"""A loop that never ends is named, not a loop inside or behind it, and mostly long before the time limit."""

import subprocess
from pathlib import Path

import pytest

from emulator.tests.programs import HERE, Execution, build, execute, trace_in
from emulator.tests.seeded_bugs import programs_in

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
    (found,) = done.findings()
    assert (found["is"], found["line"]) == ("loop_never_ends", ENDLESS[name]), found
    assert done.exit_code == 702 % 256


def test_an_endless_loop_of_the_host_is_named_at_the_limit(tmp_path: Path) -> None:
    program = build(SOURCE)
    with pytest.raises(subprocess.TimeoutExpired):
        execute(program, ON_THE_HOST, folder=tmp_path, timeout_s=2, GRADER_EMULATOR_KERNEL_SECONDS="0.5")
    (found,) = Execution(0, "", "", trace_in(tmp_path), program).findings()
    assert (found["is"], found["facts"]["host_at"].partition(":")[0]) == ("host_endless", "loops.cu")
    assert found["line"] in range(ENDLESS[ON_THE_HOST], ENDLESS[ON_THE_HOST] + 4)


@pytest.mark.parametrize("name", [name for name in programs_in(SOURCE) if name.startswith("ends_")])
def test_a_loop_that_takes_long_ends(name: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE), name, folder=tmp_path, GRADER_EMULATOR_KERNEL_SECONDS=LIMIT_S)
    assert (done.exit_code, done.findings()) == (0, [])
