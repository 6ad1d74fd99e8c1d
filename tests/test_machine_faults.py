"""Errors that speak of the machine are the machine's only where the grader finds it failing too."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from grader.base.verdict import Fault, Verdict
from grader.checking.check import Check
from grader.commands import choice, submissions
from grader.commands.choice import Choice
from grader.grading.judgement import judge
from grader.programs.engine import probe
from grader.programs.engine.cuda import CudaEngine, Gpu
from grader.programs.run import Run
from grader.programs.toolkit import find_toolkit
from grader.programs.trace import ApiError, Trace
from grader.sandbox import Outcome
from tests.support.batch_engine import PlainC


class NothingStarts(PlainC):
    def problem(self) -> str:
        return "cuInit failed with error 304"


ENDED = Outcome(0, None, "", 0.1, 0.1, 1, "", "")


@pytest.mark.parametrize(("engine", "fault"), [(NothingStarts(), Fault.MACHINE), (PlainC(), Fault.STUDENT)])
def test_a_broken_gpu_is_believed_only_while_the_machine_fails(engine: PlainC, fault: Fault) -> None:
    trace = Trace(api_errors=(ApiError("cudaMalloc", 214, "cudaErrorECCUncorrectable"),))
    run = Run(ENDED, Path("output"), trace, "")
    wrong = Check("missing", "There is no output.", 4)
    judgement = judge(run, wrong, limit="the limit", engine=engine)
    assert judgement.fault is fault
    assert (judgement.verdict is Verdict.GRADER_ERROR) is (fault is Fault.MACHINE)


@pytest.mark.parametrize(("broke", "verdict"), [("", Verdict.RUNTIME_ERROR), ("memory", Verdict.MEMORY_LIMIT)])
def test_a_killed_program_is_over_its_memory_only_if_the_run_broke_that_limit(broke: str, verdict: Verdict) -> None:
    killed = replace(ENDED, exit_code=None, signal="SIGKILL", broke=broke)
    run = Run(killed, Path("output"), None, "")
    judgement = judge(run, Check("missing", "There is no output.", 4), limit="the limit")
    assert (judgement.verdict, judgement.fault) == (verdict, Fault.STUDENT)


def test_the_machine_is_not_tried_for_a_program_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Trace(api_errors=(ApiError("cudaSetDevice", 101, "cudaErrorInvalidDevice"),))
    monkeypatch.setattr(PlainC, "problem", lambda self: pytest.fail("tried"))
    passed = judge(Run(ENDED, Path("output"), trace, ""), Check("passed", "", 4), limit="", engine=PlainC())
    assert passed.verdict is Verdict.PASSED


def test_the_probe_fails_with_a_phrase_where_no_gpu_may_be_used() -> None:
    hidden = {"CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run([sys.executable, probe.__file__], env=hidden, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "failed with error" in done.stderr or "cannot be loaded" in done.stderr


def test_a_gpu_that_cannot_be_used_confined_is_told_in_words() -> None:
    gone = Gpu(0, "GPU-0", "a GPU", "1", (9, 0), 1 << 30)
    assert re.match(
        r"(libcuda.so.1 cannot be loaded|cuInit failed|cuDevice)", CudaEngine(find_toolkit(), gone).problem()
    )


@pytest.mark.parametrize(
    ("engine", "verdict", "fault"),
    [(PlainC(), Verdict.NO_OUTPUT, Fault.STUDENT), (NothingStarts(), Verdict.GRADER_ERROR, Fault.MACHINE)],
)
def test_nobody_fails_where_no_program_can_start(
    engine: PlainC, verdict: Verdict, fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "select_engines", lambda *_: (engine,))
    source = tmp_path / "hw4.cu"
    source.write_text("int main() { return 1; }")
    [record] = submissions.grade_paths([source], Choice("hw4", "s01", "auto"))
    [test] = record.tests
    assert (test.verdict, test.fault) == (verdict, fault)
    assert fault is Fault.STUDENT or "error 304" in test.reason
