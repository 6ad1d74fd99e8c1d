"""Records made for tests: nothing ran to make them."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from grader.base.verdict import Fault, Verdict
from grader.classes.final_points import Line, standing
from grader.records.record import (
    BuildRecord,
    EngineRecord,
    GraderRecord,
    MachineRecord,
    OutsideRecord,
    PartRecord,
    RecheckedTest,
    RecheckRecord,
    Record,
    Scores,
    SubmissionRecord,
    TestRecord,
    TimingRecord,
)
from grader.store import Attempt
from grader.store.rows import Points, Student


def made_test(name: str, verdict: Verdict = Verdict.PASSED, **changes: object) -> TestRecord:
    """One testcase's record; a fault and a reason that fit the verdict."""
    failed = verdict is not Verdict.PASSED
    fault = (Fault.MACHINE if verdict is Verdict.GRADER_ERROR else Fault.STUDENT) if failed else None
    values: dict[str, object] = {
        "name": name,
        "shape": (2, 128, 32),
        "verdict": verdict,
        "fault": fault,
        "reason": f"It failed: {verdict}." if failed else "",
        "wall_s": 0.5,
    }
    if changes.get("gpu_ms") is not None and not failed:
        values["timing"] = repeated(changes["gpu_ms"])
    return TestRecord.model_validate(values | changes)


def repeated(median_ms: object, *, seen: bool = True, **changes: object) -> TimingRecord:
    """The timing of repeated runs that a clock outside the program has `seen`."""
    outside = OutsideRecord(source="GPM", interval_s=3.0, busy_ms=16.0, traced_ms=7.0, allowed_ms=40.0)
    values = {"runs": (), "median_ms": median_ms, "stopped": "stable", "rule": "", "outside": outside if seen else None}
    return TimingRecord.model_validate(values | changes)


def made_recheck(tests: Sequence[str], reason: str = "") -> RecheckRecord:
    """A recheck of these tests that passed, or did not for `reason`."""
    return RecheckRecord(
        created="2026-11-21T00:00:00+00:00",
        draw="fresh 0123456789abcdef",
        device="NVIDIA H200",
        passed=not reason,
        reason=reason,
        tests=tuple(RecheckedTest(name=name, verdict=Verdict.PASSED) for name in tests),
    )


def made_record(
    student: str = "alice",
    *,
    tests: Sequence[TestRecord] | None = None,
    speedups: Sequence[float] = (),
    device: str = "NVIDIA H200",
    total: float | None = None,
    **changes: object,
) -> Record:
    """A record of `student`: of `tests`, or of one passed and timed test per speedup; what has a time was rechecked."""
    timed = [
        made_test(f"t{number:02}", gpu_ms=1000 / speedup, speedup=speedup)
        for number, speedup in enumerate(speedups, start=21)
    ]
    chosen = tuple(tests if tests is not None else timed or [made_test("s01"), made_test("s02", Verdict.WRONG_ANSWER)])
    on_gpu = not device.startswith("emulated")
    values: dict[str, object] = {
        "created": "2026-11-21T00:00:00+00:00",
        "grader": GraderRecord(version="0.1.0"),
        "assignment": "hw4",
        "assignment_sha256": "0" * 64,
        "submission": SubmissionRecord(
            id=student,
            path=f"class/{student}/hw4.cu",
            sha256=hashlib.sha256(student.encode()).hexdigest(),
            files=("hw4.cu",),
        ),
        "engine": EngineRecord(
            name="cuda" if on_gpu else "emulator", device=device, facts={"driver": "580.1", "compiler": "nvcc V13"}
        ),
        "machine": MachineRecord(host="here", cpu="a CPU", confinement="bubblewrap"),
        "build": BuildRecord(ok=True, log="", seconds=1.5, flags=("-O3",), flags_from="the assignment", cached=False),
        "tests": chosen,
        "occupancy": None,
        "scores": Scores.model_validate(
            {"total": total, "max": 100, "correctness": 60.0, "speedup": None, "occupancy": None, "report": None}
        ),
        "parts": (
            PartRecord(part="correctness", points=60.0, max=60, how="0 of 2 tests failed: max(0, 60 - 3 x 0)"),
            PartRecord(part="speedup", points=None, max=20, how="not measured: there was no GPU"),
            PartRecord(part="occupancy", points=None, max=10, how="not measured: there was no GPU"),
            PartRecord(part="report", points=None, max=10, how="entered by an assistant"),
        ),
        "practice": False,
        "not_measured": (),
        "notes": (),
        "recheck": made_recheck([test.name for test in chosen if test.gpu_ms is not None]),
    }
    return Record.model_validate(values | changes)


def practice_record(**changes: object) -> Record:
    """A record of the emulator: one public test passed, the other ran into its time limit."""
    scores = {"total": None, "max": 100, "correctness": 30.0, "speedup": None, "occupancy": None, "report": None}
    values: dict[str, object] = {
        "tests": (
            made_test("s01", wall_s=None, max_error=1e-6),
            made_test("s02", Verdict.TIME_LIMIT, wall_s=None, shape=(3, 128, 64), reason="Stopped."),
        ),
        "scores": Scores.model_validate(scores),
        "parts": (PartRecord(part="correctness", points=30.0, max=60, how="because"),),
        "practice": True,
        "not_measured": ("speedup: no GPU",),
        "recheck": None,
    }
    return made_record(device="emulated sm_80", **(values | changes))  # type: ignore[arg-type]


def line_of(record: Record, nickname: str = "", penalty: float = 0.0, **entered: float) -> Line:
    """The gradebook's line of a student whose only attempt has this record."""
    student = Student(record.submission.id, "", nickname, "", f"page of {record.submission.id}")
    attempt = Attempt(
        1, student, 1, record.submission.sha256, datetime(2026, 11, 20, tzinfo=UTC), 0, penalty, 1, record
    )
    points = {part: Points(student.id, part, value, "") for part, value in entered.items()}
    return standing(attempt, points)
