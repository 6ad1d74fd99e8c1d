"""Errors that speak of the machine are the machine's only where the grader finds it failing too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grader.check import Check
from grader.engine import probe
from grader.judge import judge
from grader.run import Run
from grader.sandbox import Outcome
from grader.trace import ApiError, Trace
from grader.verdict import Fault, Verdict

ENDED = Outcome(0, None, "", 0.1, 0.1, 1, "", "", 0)


@pytest.mark.parametrize(("fails", "fault"), [(True, Fault.MACHINE), (False, Fault.STUDENT)])
def test_a_broken_gpu_is_believed_only_while_the_machine_fails(fails: bool, fault: Fault) -> None:
    trace = Trace(api_errors=(ApiError("cudaMalloc", 214, "cudaErrorECCUncorrectable"),))
    run = Run(ENDED, Path("output"), trace, "")
    wrong = Check("missing", "There is no output.", 4)
    judgement = judge(run, wrong, limit_s=1, limit_name="the limit", machine_fails=lambda: fails)
    assert judgement.fault is fault
    assert (judgement.verdict is Verdict.GRADER_ERROR) is fails


def test_the_machine_is_not_tried_for_a_program_that_passed() -> None:
    trace = Trace(api_errors=(ApiError("cudaSetDevice", 101, "cudaErrorInvalidDevice"),))

    def tried() -> bool:
        raise AssertionError

    passed = judge(
        Run(ENDED, Path("output"), trace, ""), Check("passed", "", 4), limit_s=1, limit_name="", machine_fails=tried
    )
    assert passed.verdict is Verdict.PASSED


def test_the_probe_fails_with_a_phrase_where_no_gpu_may_be_used() -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run([sys.executable, probe.__file__], env=hidden, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "failed with error" in done.stderr or "cannot be loaded" in done.stderr
