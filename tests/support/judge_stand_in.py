"""A stand-in for what a judge's lanes do: it runs nothing, and what comes of a submission is written in its comments.

// seconds: 0.5     how long each stage takes; by default no time
// fails: s02       tests that fail; the others pass
// speedup: 40      what the timing stage finds
// predicted: 90    the predicted GPU time in ms, by default 100; // predicts for: 600 is how many seconds that takes
// machine fails    the first try of each stage ends with a fault of the machine, // dies: with the worker's death
// always fails     every try ends with a fault of the machine, which names a file of the server
"""

import hashlib
import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grader.base.errors import MachineFault
from grader.base.verdict import Verdict
from grader.classes.executors.executor import Task
from grader.grading.session import Grading
from grader.grading.setup import Setup
from grader.judge.lanes import StageLane
from grader.judge.ledger import Stage, Upload
from grader.judge.predictions import Prediction
from grader.judge.stage_task import Judged
from grader.records.record import RecheckRecord, Record, SubmissionRecord
from grader.store import Compressed, decompressed
from tests.support.records import made_recheck, made_record, made_test, repeated

TESTS = ("s01", "s02", "s03")


@dataclass(frozen=True)
class StandIn:
    """Grades by what the comments say; `speed` divides the seconds."""

    upload: Upload
    files: Compressed
    speed: float

    def __call__(self, grading: Grading) -> Judged:
        files = decompressed(self.files)
        text = b"\n".join(content for _, content in files).decode(errors="replace")
        said = dict(re.findall(r"// (seconds|fails|speedup): (\S+)", text))
        time.sleep(float(said.get("seconds", 0)) / self.speed)
        if "// dies" in text and self.upload.tries == 1:
            os._exit(9)
        if "// machine fails" in text and self.upload.tries == 1:
            raise MachineFault("The stand-in's machine failed.")
        if "// always fails" in text:
            raise MachineFault("/srv/grader/hw4.sqlite cannot be read: see `grader doctor`.")
        sha256 = hashlib.sha256(repr(files).encode()).hexdigest()
        names = tuple(name for name, _ in self.files)
        return Judged(sha256, names[0], self.files, _record(self.upload, sha256, names, said))


def _record(upload: Upload, sha256: str, names: tuple[str, ...], said: dict[str, str]) -> Record:
    failing = said.get("fails", "").split(",")
    tests = [made_test(name, Verdict.WRONG_ANSWER if name in failing else Verdict.PASSED) for name in TESTS]
    timed = upload.stage is Stage.TIMING
    if timed:
        speedup = float(said.get("speedup", 10))
        tests = [test.model_copy(update={"gpu_ms": 1000 / speedup, "speedup": speedup}) for test in tests]
        tests[0] = tests[0].model_copy(
            update={"timing": repeated(1000 / speedup)}
        )  # as in a real record, not every time was repeated
    record = made_record(upload.student, tests=tests, practice=not timed, total=60.0 if timed else None)
    submission = SubmissionRecord(id=upload.student, path=names[0], sha256=sha256, files=names)
    return record.model_copy(update={"submission": submission, "recheck": None})


@dataclass(frozen=True)
class MakeStandIn:
    """Makes the tasks of a foreman."""

    speed: float = 1.0

    def __call__(self, upload: Upload, files: Compressed, judged_before: frozenset[str], ended: object) -> Task:
        return StandIn(upload, files, self.speed)


@dataclass(frozen=True)
class RecheckStandIn:
    """Finds that the times of `tests` repeat."""

    record: Record
    files: Compressed
    tests: Sequence[str]

    def __call__(self, grading: Grading) -> RecheckRecord:
        return made_recheck(self.tests)


@dataclass(frozen=True)
class PredictStandIn:
    """Predicts what the comments say."""

    files: Compressed

    def __call__(self, grading: Grading) -> Prediction:
        text = b"\n".join(content for _, content in decompressed(self.files)).decode()
        said = dict(re.findall(r"// (predicted|predicts for): (\S+)", text))
        time.sleep(float(said.get("predicts for", 0)))
        ms = float(said.get("predicted", 100))
        return Prediction("s01", "H200", f"Predicted, not measured: about {ms:g} ms.", 0.9 * ms, 1.1 * ms)


def stand_in_lanes(
    setup: Setup, stages: Sequence[Stage], lanes: int = 1, speed: float = 1.0, predicts: bool = False
) -> list[StageLane]:
    """Lanes for these stages, each with a device of its own. Their conditions differ by stage, as real ones do. One
    more predicts times if `predicts`."""
    aside = StageLane("aside", "aside", setup, stage=Stage.VERDICT, aside=True, predict=PredictStandIn)
    cases = {Stage.VERDICT: setup.cases, Stage.TIMING: setup.suite.select("s01,s02")}
    return [aside] * predicts + [
        StageLane(
            name,
            name,
            replace(setup, cases=cases[stage]),
            stage=stage,
            make_task=MakeStandIn(speed),
            recheck=RecheckStandIn,
        )
        for stage in stages
        for name in (f"{stage} {number}" for number in range(lanes))
    ]
