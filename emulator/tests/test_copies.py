"""Asynchronous copies arrive when they are waited for: what a program reads before that, and what is reported."""

from pathlib import Path

import pytest

from emulator.tests.programs import HERE, Execution, build, execute
from emulator.tests.seeded_bugs import SEEDED

SOURCE = HERE / "copies.cu"
SEEDED_SOURCE = SEEDED / "async_copies.cu"


def line_of(text: str, source: Path = SOURCE) -> int:
    (found,) = [i for i, line in enumerate(source.read_text().splitlines(), 1) if text in line]
    return found


def numbers(done: Execution) -> list[int]:
    assert done.exit_code == 0, done.errors
    return [int(line) for line in done.output.split()]


@pytest.mark.parametrize("schedule", ["lockstep", "reverse", "random:7"])
def test_a_read_before_the_wait_sees_what_was_there_before(schedule: str, tmp_path: Path) -> None:
    done = execute(build(SOURCE), "before_the_wait", folder=tmp_path, GRADER_EMULATOR_SCHEDULE=schedule)
    first_tile_reversed = [64 - t for t in range(64)]
    assert numbers(done) == [0] * 64 + first_tile_reversed


def test_a_copy_that_is_never_waited_for_does_not_arrive(tmp_path: Path) -> None:
    done = execute(build(SOURCE), "never", folder=tmp_path)
    assert numbers(done) == [-1] * 64 + [-2] * 64


def test_the_source_is_read_at_the_wait(tmp_path: Path) -> None:
    done = execute(build(SOURCE), "overwritten_source", folder=tmp_path)
    assert numbers(done) == [-5] * 128


def test_a_loop_may_start_any_number_of_copies_without_waiting(tmp_path: Path) -> None:
    done = execute(build(SOURCE), "without_end", folder=tmp_path)
    assert numbers(done) == list(range(1, 129))


@pytest.mark.parametrize(
    ("name", "place", "kind", "facts"),
    [
        ("target_past_the_end", "// target", "past_dynamic_shared", {"did": "write", "relation": "just_past"}),
        ("source_past_the_end", "// source", "past_the_end", {"did": "read", "size": 512, "by": "cudaMalloc"}),
        ("misaligned", "// misaligned", "misaligned", {"bytes": 16, "past": 4}),
    ],
)
def test_a_bad_address_is_reported_where_the_copy_is_issued(
    name: str, place: str, kind: str, facts: dict[str, object], tmp_path: Path
) -> None:
    done = execute(build(SOURCE), name, folder=tmp_path)
    assert done.exit_code != 0
    (found,) = done.findings()
    assert (found["is"], found["line"]) == (kind, line_of(place))
    assert facts.items() <= found["facts"].items()


def test_a_missing_wait_names_the_copy_and_the_thread_that_issued_it(tmp_path: Path) -> None:
    done = execute(build(SEEDED_SOURCE, watch=True), "missing_wait", folder=tmp_path)
    (found,) = done.findings()
    copy = line_of("&in[t], 4); // BUG missing_wait: race", SEEDED_SOURCE)
    assert found["line"] == line_of("out[t] = s[127 - t]; // BUG missing_wait: race", SEEDED_SOURCE)
    assert (found["facts"]["other_line"], found["facts"]["other_thread"]) == (copy, "(31,0,0)")


def test_a_wait_behind_the_barrier_is_told_from_a_missing_barrier(tmp_path: Path) -> None:
    done = execute(build(SEEDED_SOURCE, watch=True), "wait_behind_the_barrier", folder=tmp_path)
    raced = [d["facts"]["how"] for d in done.findings("race")]
    assert raced == ["copy", "after_copy"]
