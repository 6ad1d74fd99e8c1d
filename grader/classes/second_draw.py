"""The graded testcases with newly drawn values, on which results are rechecked (see `recheck`).

Every record of a recheck names its draw. Nobody can know a draw before it is made. Its files are made on first use,
next to the files of the graded testcases, and removed at the end."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import MachineFault
from grader.base.progress import Progress
from grader.classes.batch.work import BuildTask
from grader.course.assignment import Assignment, HiddenInputs
from grader.course.catalogue import TestcaseFiles
from grader.course.coherence import suite_of
from grader.gpu.lock import gpu_to_ourselves
from grader.grading.pipeline import grade
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.programs.engine import Engine
from grader.programs.engine.cuda import CudaEngine
from grader.programs.oracle import ensure
from grader.programs.submission import read_submission
from grader.records.record import Record
from grader.sandbox.scratch import scratch_folder
from grader.timing.baseline import baselines_of


@dataclass(frozen=True)
class SecondDraw:
    """The testcases of an assignment with newly drawn values, and the engine that runs them."""

    setup: Setup
    progress: Progress

    @property
    def name(self) -> str:
        """The name of the draw in records."""
        return f"fresh {self.setup.suite.nonce}"

    def grade(self, folder: Path, tests: Sequence[str]) -> Record:
        """Grade the files in `folder` on `tests` of this draw: one run of each, all of its output compared."""
        setup = replace(self.setup, cases=self.setup.suite.select(",".join(tests)))
        ensure(setup.cases, setup.suite, setup.files, self.progress)
        submission, engine = read_submission(folder, setup.assignment, any_name=True), setup.engine
        grading = Grading(**vars(setup), baseline=baselines_of(setup.assignment, engine))
        built = BuildTask(submission)(grading)  # before the GPU is taken
        gpu = isinstance(engine, CudaEngine) and gpu_to_ourselves(engine.gpu.uuid, self.progress.line)
        with gpu or contextlib.nullcontext():
            return grade(grading, submission, self.progress, built)


@contextlib.contextmanager
def second_draw(rules: Assignment, engine: Engine, progress: Progress) -> Iterator[SecondDraw]:
    """Make a new draw; its files are removed when the block ends."""
    suite = suite_of(rules).redrawn(secrets.token_hex(8))
    once = rules.model_copy(update={"hidden_inputs": HiddenInputs(show=rules.hidden_inputs.show)})
    place = TestcaseFiles.beside(suite).folder
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineFault(
            f"{place}, where the files of the second draw go, cannot be created: {error.strerror}."
        ) from error
    with scratch_folder("recheck", place) as folder:
        yield SecondDraw(Setup(once, suite, TestcaseFiles(folder), (), engine), progress)
