"""Seeded bugs are found by the right check at their line; correct programs have nothing reported."""

import os
import re
from pathlib import Path
from typing import Any

import pytest

from emulator.tests.programs import CONFORMANCE_FLAGS, HERE, build, execute, names_in, target_of
from emulator.tests.seeded_bugs import ALL_SANITIZERS, SEEDED, SeededBug, correct_programs, run, seeded_bugs

EVERYTHING = os.environ.get("GRADER_TEST_EVERYTHING") == "1"
HOPPER_SHARE = "hopper_copies"
"""The seeded bugs for Hopper that run without GRADER_TEST_EVERYTHING=1: to build a file takes 11 s of CPU."""


def runs(source: Path) -> bool:
    return EVERYTHING or target_of(source) == "sm_80" or source.stem == HOPPER_SHARE


BUGS = [bug for bug in seeded_bugs() if runs(bug.source)]
RIGHT = [(source, name) for source, name in correct_programs() if runs(source)]
ARITHMETIC = {"floats", "halves", "integers", "matrices", "parameters", "rare", "textures", "whole", "wmma"}
"""Conformance programs whose threads share little: checks of memory and races have little to get wrong there."""
NOT_BY_DEFAULT = {*ARITHMETIC, "hopper_products", "hopper_async"}
"""These run with GRADER_TEST_EVERYTHING=1: to build one for Hopper with all checks takes 10 s of CPU."""
CONFORMANCE = [path for path in (HERE / "conformance").glob("*.cu") if path.stem not in NOT_BY_DEFAULT or EVERYTHING]

NOTE = "outdated_read"
"""A kind of finding that is no mistake."""


def lines_named(findings: list[dict[str, Any]]) -> set[int]:
    """The findings' own lines, and those of the other side of a race."""
    own = {d["line"] for d in findings if d["line"] is not None}
    others = {
        n for d in findings for name, n in d["facts"].items() if name in ("other_line", "line_of", "expect", "wait")
    }
    return own | others


def test_each_check_has_bugs_to_find() -> None:
    assert {bug.check for bug in BUGS} >= ALL_SANITIZERS


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_a_seeded_bug_is_found_by_its_check_at_its_line(bug: SeededBug, tmp_path: Path) -> None:
    done = run(bug.source, bug.name, tmp_path, leaks=bug.name == "leak")
    found = done.findings(bug.check)
    assert found, done.errors
    assert lines_named(found) >= bug.lines
    if target_of(bug.source) == "sm_80":  # asynchronous bugs have consequences of other kinds, such as a deadlock
        assert {d["check"] for d in done.findings()} == {bug.check}


@pytest.mark.parametrize(("source", "name"), RIGHT, ids=[name for _, name in RIGHT])
def test_nothing_is_reported_for_a_correct_program_that_looks_wrong(source: Path, name: str, tmp_path: Path) -> None:
    done = run(source, name, tmp_path)
    assert done.exit_code == 0
    kinds = {found["is"] for found in done.findings()}
    assert kinds == ({NOTE} if name == "first_look_before_compare_and_swap" else set())


@pytest.mark.parametrize("source", sorted(CONFORMANCE), ids=lambda path: path.stem)
def test_nothing_is_reported_for_the_conformance_programs(source: Path, tmp_path: Path) -> None:
    program = build(source, flags=CONFORMANCE_FLAGS, watch=True, target=target_of(source))
    done = execute(program, folder=tmp_path, timeout_s=200)
    assert done.exit_code == 0 and len(re.findall(r" ok$", done.output, re.M)) == len(names_in(source))
    assert [d for d in done.findings() if d["check"] != "api" and d["is"] != NOTE] == []


@pytest.mark.skipif(not EVERYTHING, reason="to build it takes 11 s of CPU")
@pytest.mark.parametrize("name", ["product_before_its_copy", "operand_copied_over"])
def test_a_product_that_reads_while_a_copy_is_under_way_is_found_without_the_slow_checks(
    name: str, tmp_path: Path
) -> None:
    source = SEEDED / "hopper_products.cu"
    (bug,) = (bug for bug in seeded_bugs() if bug.name == name)
    found = execute(build(source, target="sm_90a"), name, folder=tmp_path).findings("sync")
    assert lines_named(found) >= bug.lines


def test_a_race_names_the_variable_both_lines_and_both_threads(tmp_path: Path) -> None:
    done = run(HERE / "seeded" / "shared_races.cu", "missing_barrier_after_store", tmp_path)
    found = next(d for d in done.findings("race") if d["facts"]["between"] == "warps")
    facts = found["facts"]
    assert (facts["array"], facts["size"], facts["does"], facts["other_does"]) == ("s", 512, "write", "read")
    assert {found["line"], facts["other_line"]} == {6, 7}
    assert found["thread"] is not None and re.fullmatch(r"\(\d+,0,0\)", facts["other_thread"])


def test_a_race_of_blocks_names_the_other_block_and_the_allocation(tmp_path: Path) -> None:
    done = run(HERE / "seeded" / "global_races.cu", "overlapping_output", tmp_path)
    (found,) = done.findings("race")
    assert (found["block"], found["facts"]["other_block"]) == ([1, 0, 0], "(0,0,0)")
    assert found["facts"]["size"] == 1024 and found["facts"]["allocated_at"].startswith("seeded.h:")


def test_reports_of_races_are_the_same_each_time(tmp_path: Path) -> None:
    source = HERE / "seeded" / "global_races.cu"
    first, *others = (run(source, "in_place_between_blocks", tmp_path).findings("race") for _ in range(3))
    assert first and others == [first, first]


def test_a_place_is_reported_once_and_the_rest_is_counted(tmp_path: Path) -> None:
    done = run(HERE / "seeded" / "uninitialised.cu", "never_written", tmp_path)
    assert len(done.findings("init")) == 1
    assert "(127 further findings at the places named above)" in done.errors


def test_a_leak_is_told_only_when_asked_and_only_as_a_note(tmp_path: Path) -> None:
    source = HERE / "seeded" / "lifetime.cu"
    (note,) = run(source, "leak", tmp_path, leaks=True).findings()
    assert (note["is"], note["facts"]["size"]) == ("leak", 4000)
    assert note["facts"]["allocated_at"].startswith("lifetime.cu:")
    assert run(source, "leak", tmp_path).findings() == []


def test_an_array_of_one_letter_keeps_its_name(tmp_path: Path) -> None:
    (found,) = run(HERE / "seeded" / "bounds.cu", "dynamic_shared_not_asked_for", tmp_path).findings()
    assert (found["facts"]["array"], found["facts"]["size"]) == ("s", 64)  # "s" is also a mangled short
