"""In a sampled run few blocks run, and their counts stand for all blocks."""

from pathlib import Path
from typing import Any

import pytest

from emulator.tests.programs import HERE, Execution, build, execute

SOURCE = HERE / "sampled.cu"


def run(name: str, folder: Path, **environment: Any) -> Execution:
    done = execute(build(SOURCE, count=True), name, folder=folder, **environment)
    assert done.exit_code == 0, done.output + done.errors
    return done


def the(done: Execution, kind: str, **fields: Any) -> dict[str, Any]:
    found = [event for event in done.trace if event["kind"] == kind and fields.items() <= event.items()]
    assert len(found) == 1, found
    return found[0]


def test_few_blocks_of_few_launches_count_for_all(tmp_path: Path) -> None:
    whole = the(run("same_work", tmp_path), "access", operation="load")
    sampled = run("same_work", tmp_path, GRADER_EMULATOR_SAMPLE="3")
    launches = the(sampled, "launches")
    assert (launches["count"], launches["grid"], launches["block"]) == (300, [300, 1, 1], [64, 1, 1])
    counted = the(sampled, "access", operation="load")
    assert counted["requests"] == pytest.approx(whole["requests"], rel=0.02)
    assert counted["units"] == pytest.approx(whole["units"], rel=0.05)
    entered = max(event["warps"] for event in sampled.trace if event["kind"] == "executed")
    assert entered == pytest.approx(whole["requests"], rel=0.02)


def test_the_ptx_line_of_an_access_is_a_load(tmp_path: Path) -> None:
    access = the(run("same_work", tmp_path, GRADER_EMULATOR_SAMPLE="1"), "access", operation="load")
    _, _, ptx = build(SOURCE, count=True).read_bytes().partition(b"GRADER PTX:")
    lines = ptx[8 : 8 + int.from_bytes(ptx[:8], "little")].decode().splitlines()
    assert "ld.global.f32" in lines[access["ptx_line"] - 1]


def test_reuse_distances_are_those_of_warps_in_turns(tmp_path: Path) -> None:
    done = run("read_twice", tmp_path, GRADER_EMULATOR_SAMPLE="1")
    load = the(done, "access", operation="load")
    reuse = the(done, "reuse", ptx_line=load["ptx_line"])
    sectors = 32 * 4  # of one pass of one warp
    near = [0] * len(reuse["near"])
    near[-1] = sectors  # the first warp's first pass
    near[0] = 2 * sectors  # the second warp follows the first at once
    near[5] = sectors  # 31 other lines were used since the first pass
    assert reuse["near"] == near
