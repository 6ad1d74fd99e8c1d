"""A run's memory limit never exceeds its share of the machine."""

from pathlib import Path

import pytest

from grader.sandbox import Job, Limits, memory_share, run
from grader.sandbox.memory_share import bytes_there, of_a_program, of_a_tool

GIB = 1 << 30


@pytest.mark.parametrize(
    ("there", "lanes", "helpers", "program", "tool"),
    [
        (16, 1, 0, 14, 3.5),
        (24, 1, 0, 16, 5.25),
        (16, 2, 2, 3.5, 1.75),
        (128, 1, 15, 16, 1.866),
        (2048, 8, 120, 16, 3.733),
        (2, 1, 0, 1, 1),
    ],
)
def test_all_that_runs_at_once_fits_into_the_machine(
    there: int, lanes: int, helpers: int, program: float, tool: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_share, "bytes_there", lambda: there * GIB)
    monkeypatch.setenv(memory_share.AT_ONCE, f"{lanes}+{helpers}")
    assert of_a_program(16 * GIB) / GIB == pytest.approx(program, abs=0.001)
    assert of_a_tool(16 * GIB) / GIB == pytest.approx(tool, abs=0.001)
    assert of_a_program(GIB // 2) == GIB // 2


def test_a_control_groups_limit_is_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:       16777216 kB\nMemFree: 1 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/slice\n")
    (tmp_path / "cgroup/slice").mkdir(parents=True)
    (tmp_path / "cgroup/slice/memory.max").write_text(f"{4 * GIB}\n")
    monkeypatch.setattr(memory_share, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(memory_share, "_CGROUPS", tmp_path / "cgroup")
    assert bytes_there() == 4 * GIB
    (tmp_path / "cgroup/slice/memory.max").write_text("max\n")
    assert bytes_there() == 16 * GIB


def test_a_tool_is_stopped_at_its_share(tmp_path: Path) -> None:
    limits = Limits(wall_s=60, memory_bytes=of_a_program(64 << 20))
    outcome = run(Job(("sh", "-c", "head -c 300000000 /dev/zero | tail"), tmp_path), limits)
    assert outcome.broke == "memory"
