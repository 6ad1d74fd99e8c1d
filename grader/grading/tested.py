"""The facts about one test, and the one function that makes its record from them.

Everything that happens after the run (a closer look, probes, a second draw) adds facts. The record is made at the end,
when also is decided how much of the facts it may show.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace

from grader.base.verdict import STUDENT_VERDICTS, Fault, Verdict
from grader.checking.check import Check
from grader.course.assignment import HiddenInputs
from grader.course.testcase import Case
from grader.findings import Finding, rank
from grader.grading.judgement import Judgement
from grader.programs.trace import Trace
from grader.records.disclosure import Doubt, disclosed, is_secret
from grader.records.record import (
    MAX_FINDINGS,
    BaselineRecord,
    CornerRecord,
    FloorRecord,
    PrecisionRecord,
    ReferenceRecord,
    TestRecord,
    TimingRecord,
)
from grader.timing.baseline import Baseline

_ON_OTHER_VALUES = "Right on the testcase's usual values, but not on other values of the same shape: "
BEFORE_ITS_RUN = (Verdict.COMPILE_ERROR, Verdict.NOT_RUN)


@dataclass(frozen=True)
class GpuTime:
    """A time that counts."""

    ms: float


@dataclass(frozen=True)
class NotMeasured:
    """There is no time, which is not the program's fault."""

    why: str


@dataclass(frozen=True)
class Refused:
    """A time that is not believed: it earns no points. `ms` is what was measured, None if nothing can be shown."""

    why: Doubt
    ms: float | None = None


@dataclass(frozen=True)
class Times:
    """What is known of a test's GPU time. `notes` are remarks on how it was measured, `doubts` are for the staff."""

    gpu: GpuTime | NotMeasured | Refused = NotMeasured("it did not run")
    timing: TimingRecord | None = None
    floor: FloorRecord | None = None
    baseline: Baseline | None = None
    reference: ReferenceRecord | None = None
    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    def refused(self, why: Doubt, ms: float | None = None) -> Times:
        """These times, refused for one more reason."""
        return replace(self, gpu=Refused(why, ms), doubts=tuple(dict.fromkeys((*self.doubts, why))))


@dataclass(frozen=True)
class Ran:
    """What the graded run left, besides its output file. `copy_ms` and `phases_ms` are those of a trace that can be
    believed."""

    wall_s: float
    limit_s: float
    cpu_s: float
    ending: str
    printed: str
    kernels: int | None
    launched: tuple[str, ...] = ()
    copy_ms: float | None = None
    phases_ms: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Tested:
    """The facts about one test. Without a run, `ran` and `check` are None."""

    __test__ = False  # not a test class for pytest
    case: Case
    judgement: Judgement
    ran: Ran | None = None
    check: Check | None = None
    times: Times = Times()
    sidecar: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """What was written down when the testcase's files were made."""
    corners: tuple[CornerRecord, ...] = ()
    trace: Trace | None = None
    """The graded run's trace, if the score needs a profile of the test."""
    explained: bool = False
    """Whether the engine itself saw in this run which line is wrong."""
    luck: str = ""
    """The mistake that a closer look found although the test passed."""
    redrawn: bool = False
    """Whether these are the facts of a second draw, after the usual values passed."""
    explaining: Future[Judgement] | None = None
    """The judgement with the cause of the failure, which is looked for while the GPU runs other tests."""

    @property
    def verdict(self) -> Verdict:
        return self.judgement.verdict

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.PASSED

    @property
    def failed_by_itself(self) -> bool:
        """Whether the program ran and failed by the student's fault."""
        return self.judgement.fault is Fault.STUDENT and self.ran is not None

    def settled(self) -> Tested:
        """The facts with the cause of a failure, as soon as it is known."""
        return self if self.explaining is None else replace(self, judgement=self.explaining.result(), explaining=None)

    def with_cause(self, cause: str, findings: Sequence[Finding] = ()) -> Tested:
        """The facts with the likeliest cause of the failure, or of one that luck prevented, and what it rests on."""
        found = rank([self.judgement.findings, findings])[:MAX_FINDINGS]
        if not cause:
            return self if self.passed else replace(self, judgement=replace(self.judgement, findings=found))
        if self.passed:
            return replace(self, luck=cause, judgement=replace(self.judgement, findings=found))
        # The pattern of the wrong values and the call that failed are consequences.
        wrong = self.verdict is Verdict.WRONG_ANSWER and self.check is not None
        rest = self.check.reason if wrong and self.check is not None else self.judgement.consequence
        return replace(self, judgement=replace(self.judgement, findings=found, cause=cause, consequence=rest))


def both(fixed: Tested, fresh: Tested) -> Tested:
    """The facts about a case that passed and was run again on a second draw. It passes if both runs pass; a second run
    that the machine could not make costs nothing."""
    if fresh.verdict in STUDENT_VERDICTS:
        return replace(fresh, redrawn=True)
    doubts = tuple(dict.fromkeys((*fixed.times.doubts, *fresh.times.doubts)))
    times = replace(fixed.times, doubts=doubts)
    if isinstance(fresh.times.gpu, Refused):
        first = fixed.times.gpu
        times = replace(times, gpu=Refused(first.why if isinstance(first, Refused) else fresh.times.gpu.why))
    return replace(fixed, times=times)


def record_of(test: Tested, rules: HiddenInputs) -> TestRecord:
    """The record of a test, with as much of the facts as `rules` let a student read."""
    secret = is_secret(rules, test.case) and test.ran is not None
    said, ran, check, times, gpu = test.judgement, test.ran, test.check, test.times, test.times.gpu
    seed = test.sidecar.get("seed")
    fields = disclosed(
        {
            "name": test.case.name,
            "shape": test.case.shape,
            "verdict": said.verdict,
            "fault": said.fault,
            "reason": said.reason,
            "cause": said.cause,
            "findings": said.findings[:MAX_FINDINGS],
            "max_error": check.max_error if check is not None and math.isfinite(check.max_error or 0) else None,
            "wrong_elements": check.wrong if check and check.kind in ("passed", "values", "precision") else None,
            "precision": _precision(check) if check is not None else (),
            "wall_s": round(ran.wall_s, 4) if ran is not None else None,
            "limit_s": ran.limit_s if ran is not None else None,
            "cpu_s": round(ran.cpu_s, 4) if ran is not None else None,
            "gpu_ms": None if isinstance(gpu, NotMeasured) else gpu.ms,
            "copy_ms": ran.copy_ms if ran is not None else None,
            "phases_ms": ran.phases_ms if ran is not None else {},
            "kernels": ran.kernels if ran is not None else None,
            "speedup": times.baseline.seconds * 1e3 / gpu.ms if times.baseline and isinstance(gpu, GpuTime) else None,
            "baseline": _baseline_record(times.baseline) if times.baseline is not None else None,
            "input_digest": test.sidecar.get("input", {}).get("sha256"),
            "timing": times.timing,
            "timing_refused": gpu.why.told(secret=secret) if isinstance(gpu, Refused) else "",
            "floor": times.floor,
            "reference": times.reference,
            "reference_ms": times.reference.timing.median_ms if times.reference is not None else None,
            "seed": f"{seed['kind']} {seed['id']}" if seed else None,
            "exit": ran.ending if ran is not None else None,
            "output": ran.printed if ran is not None else "",
            "warnings": (*said.warnings, *times.notes),
            "flags": tuple(dict.fromkeys(doubt.told(secret=secret) for doubt in times.doubts)),
            "corners": test.corners,
        },
        secret=secret,
    )
    if test.redrawn:
        fields["reason"] = _ON_OTHER_VALUES + fields["reason"]
    if test.luck:
        fields["warnings"] = (test.luck, *fields["warnings"])
    return TestRecord(**fields)


def _precision(check: Check) -> tuple[PrecisionRecord, ...]:
    return tuple(
        PrecisionRecord(
            tensor=found.tensor,
            largest=found.largest,
            plain_largest=found.limit.plain.largest,
            allowed_largest=found.limit.largest,
            rms=found.rms,
            plain_rms=found.limit.plain.rms,
            allowed_rms=found.limit.rms,
        )
        for found in check.precision
        if found.limit.plain is not None and found.limit.rms is not None and found.rms is not None
        if math.isfinite(found.largest) and math.isfinite(found.rms)
    )


def _baseline_record(baseline: Baseline) -> BaselineRecord:
    return BaselineRecord(
        seconds=baseline.seconds,
        description=baseline.describe(),
        source_sha256=baseline.source_sha256,
        cpu=baseline.cpu,
        spread=round(baseline.rate.spread, 4),
        id=baseline.id,
        date=baseline.date,
    )
