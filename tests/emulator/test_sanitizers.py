"""Seeded bugs in shared memory are found at their line; correct programs have nothing reported."""

import re
from pathlib import Path

import pytest

from tests.emulator.programs import HERE, build, execute

SOURCE = HERE / "races.cu"
SANITIZERS = frozenset({"memory", "sync", "race", "init"})


def line_of(text: str) -> int:
    (found,) = [i for i, line in enumerate(SOURCE.read_text().splitlines(), 1) if text in line]
    return found


@pytest.mark.parametrize(
    ("name", "tool", "place"),
    [
        ("missing_barrier_after_store", "race", "race: read"),
        ("missing_barrier_before_reuse", "race", "race: overwrite"),
        ("reduction_without_barrier", "race", "race: reduction"),
        ("all_write_one_word", "race", "race: last writer"),
        ("atomic_then_plain_read", "race", "race: no barrier after atomics"),
        ("float4_tile", "race", "race: tile"),
        ("uninitialised_tail", "init", "init: tail"),
        ("uninitialised_sum", "init", "init: never stored"),
    ],
)
def test_a_seeded_bug_is_found_at_its_line(name: str, tool: str, place: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE, sanitize=SANITIZERS), name, folder=tmp_path)
    # A race has two places. Which of them is reached second, and is the finding's own, depends on the schedule.
    named = {d["line"] for d in done.diagnostics(tool)}
    named |= {int(n) for d in done.diagnostics(tool) for n in re.findall(r"at line (\d+)", d["message"])}
    assert line_of(place) in named
    # Reading what another warp has yet to write is, in this schedule, also a read of nothing.
    assert {d["tool"] for d in done.diagnostics()} <= {tool, "init"}


def test_a_race_names_both_lines_and_both_threads(tmp_path: Path) -> None:
    done = execute(build(SOURCE, sanitize=SANITIZERS), "reduction_without_barrier", folder=tmp_path)
    assert any(
        f"of another warp at line {line_of('race: reduction')}" in d["message"] for d in done.diagnostics("race")
    )
    assert all(d["thread"] is not None and "__sync" in d["advice"] for d in done.diagnostics("race"))


def test_nothing_is_reported_for_a_correct_kernel(tmp_path: Path) -> None:
    done = execute(build(SOURCE, sanitize=SANITIZERS), "correct", folder=tmp_path)
    assert done.exit_code == 0 and done.diagnostics() == []


@pytest.mark.parametrize(
    "name",
    [
        "tree_reduction",
        "prefix_sum",
        "barriers_inside_functions",
        "barrier_arrive_and_sync",
        "named_barriers_for_half_a_block",
    ],
)
def test_nothing_is_reported_for_correct_conformance_programs(name: str, tmp_path: Path) -> None:
    flags = ("-O3", "-std=c++17", "--extended-lambda")
    done = execute(build(HERE / "conformance" / "control.cu", flags=flags, sanitize=SANITIZERS), name, folder=tmp_path)
    assert done.exit_code == 0 and done.diagnostics() == []
