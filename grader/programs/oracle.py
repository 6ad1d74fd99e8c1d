"""Makes the missing files of testcases, with the GPU as the oracle if that is faster than numpy."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

from grader.base.errors import UsageError
from grader.base.progress import Progress
from grader.course import catalogue
from grader.course.catalogue import TestcaseFiles
from grader.course.testcase import Case, Suite
from grader.programs import gpu_oracle

ORACLES = ("auto", "gpu", "numpy")


def ensure(
    cases: Sequence[Case],
    suite: Suite,
    files: TestcaseFiles,
    progress: Progress,
    *,
    oracle: str = "auto",
    force: bool = False,
) -> tuple[Case, ...]:
    """Make the missing files (`force`: all files) and return the cases that were made. The GPU is the oracle if there
    is one and `oracle` allows it."""
    wanted = tuple(case for case in cases if force or catalogue.state(case, files, suite.seed(case)) != "ready")
    if not wanted:
        return ()
    with _oracle(oracle, sum(case.flops for case in wanted)) as quick:
        shown_by = partial(case_progress, progress=progress)
        return catalogue.ensure(wanted, suite, files, shown_by, oracle=quick, force=force)


_WORTH_A_GPU_FLOPS = 50e9
"""The number of operations that numpy does in the time it takes to open a CUDA context."""


def _oracle(words: str, flops: float) -> contextlib.AbstractContextManager[catalogue.QuickOracle | None]:
    if words not in ORACLES:
        raise UsageError(f"--oracle: unknown oracle {words!r}; choose one of {', '.join(ORACLES)}.")
    why_not = "" if words == "numpy" else gpu_oracle.unavailable()
    if words == "gpu" and why_not:
        raise UsageError(f"--oracle gpu: {why_not}; use --oracle numpy, which makes the same files.")
    if words == "numpy" or why_not or (words == "auto" and flops < _WORTH_A_GPU_FLOPS):
        return contextlib.nullcontext()
    return gpu_oracle.open_gpu_oracle()


def case_progress(case: Case, progress: Progress) -> Callable[[int, int], None]:
    """A function that reports a case's finished bytes to `progress` and announces the case's stage once."""
    announced: list[int] = []

    def report(done: int, total: int) -> None:
        if total not in announced:
            announced.append(total)
            progress.stage(f"testcase {case.name} ({total / 1e6:,.0f} MB)", total=total)
        progress.advance(done)

    return report
