"""Hostile and honest programs on a real GPU: what the emulator cannot show. The whole suites: `make redteam honest`."""

from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.verdict import Verdict
from grader.commands import submissions
from grader.commands.choice import Choice
from grader.programs.engine.cuda import CudaEngine
from tests.honest.__main__ import complaints, hand_in, variants
from tests.redteam.__main__ import read_attacks, run_all
from tests.support.course import ROOT

TRACED = {"forge_trace", "no_kernel", "end_without_tracer", "read_back_trace", "read_descriptors", "fork_bomb"}
TRACED |= {"blame_the_machine", "trace_flood", "trace_of_odd_shapes"}
ATTACKS = [attack for attack in read_attacks() if attack.gpu or attack.name in TRACED]
PARTS = 4  # each makes its own testcases, in an arena of its own


@pytest.mark.parametrize("part", range(PARTS))
def test_attacks_on_the_gpu_and_on_its_trace_are_stopped(part: int, place_for_attacks: Path, timed: CudaEngine) -> None:
    results = list(run_all(ATTACKS[part::PARTS], timed, place_for_attacks))
    assert {result.attack.name: result.bypasses for result in results if result.bypasses} == {}


@pytest.mark.parametrize("variant", variants(), ids=lambda path: path.stem)
def test_an_honest_variant_passes_and_is_timed(variant: Path, tmp_path: Path, timed: CudaEngine) -> None:
    folder = hand_in(variant, tmp_path)
    [record] = submissions.grade_paths([folder], Choice("hw4", "s01,s02,t01", "cuda"))
    assert complaints(record) == []
    assert all(test.gpu_ms is not None for test in record.tests)


def test_an_overflow_shows_on_the_testcases_that_are_large_enough() -> None:
    wrong = ROOT / "reference/hw4/wrong/int_overflow.cu"
    [record] = submissions.grade_paths([wrong], Choice("hw4", "t28,t29", "cuda"))
    verdicts = {test.name: test.verdict for test in record.tests}
    assert verdicts == {"t28": Verdict.PASSED, "t29": Verdict.WRONG_ANSWER}


def test_a_gpu_that_works_is_told_from_one_that_is_not_there(gpu: CudaEngine) -> None:
    assert gpu.problem() == ""
    gone = CudaEngine(gpu.toolkit, replace(gpu.gpu, uuid="GPU-00000000-0000-0000-0000-000000000000"))
    assert "failed with error" in gone.problem()
