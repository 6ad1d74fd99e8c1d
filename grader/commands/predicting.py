"""The predicted times that `grader serve` shows: made while nobody waits for a verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.progress import Progress
from grader.classes.batch.work import ReadTask
from grader.commands.estimating import estimates, usual_case
from grader.course.coherence import suite_of
from grader.estimates.gpus import GPUS
from grader.grading.session import Grading
from grader.judge.predictions import Prediction
from grader.judge.stage_task import laid_out
from grader.programs.toolkit import find_toolkit
from grader.report.estimate import limit_sentence, sentence
from grader.store import Compressed


@dataclass(frozen=True)
class PredictTask:
    """A task of the judge's workers: predict the GPU time of a submission; None if that is not possible."""

    gpu: str
    files: Compressed

    def __call__(self, grading: Grading) -> Prediction | None:
        rules = grading.assignment
        case = usual_case(rules, suite_of(rules))
        with contextlib.suppress(GraderFault, MachineFault, UsageError), laid_out(self.files) as folder:
            submission = ReadTask("", folder)(grading).submission
            (found,) = estimates(submission, rules, [case], GPUS[self.gpu], Progress(), fixes=True)
            if found.time is not None:
                words = f"{sentence(found)} {limit_sentence(found)}"
                return Prediction(case.name, found.gpu, words, found.time.low_ms, found.time.high_ms)
        return None


def predictor(devices: Sequence[str]) -> Callable[[Compressed], PredictTask] | None:
    """Makes a judge's predictions for the first of its GPUs that is known, else for an H100; None without nvdisasm."""
    if find_toolkit().tool("nvdisasm") is None:
        return None
    gpu = next((name for name, gpu in GPUS.items() if any(gpu.title in device for device in devices)), "h100")
    return partial(PredictTask, gpu)
