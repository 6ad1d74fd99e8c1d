"""assignment.yaml → Assignment: what is handed in, how it is built, what it may take, how it is scored.

Everything an instructor sets is a field of a pydantic model here. A wrong file gives one `UsageError` that names
the file, the key, the value found and what is allowed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, model_validator

from grader.errors import UsageError
from grader.floors import Unit
from grader.paths import course_root, shown
from grader.yaml_model import read_yaml_model


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SubmissionRules(_Strict):
    """What a student may hand in."""

    main: str = Field(pattern=r"^[\w.-]+\.cu$")
    max_files: PositiveInt = 64
    max_bytes: PositiveInt = 2 * 1024 * 1024


class BuildRules(_Strict):
    """How a submission is compiled."""

    default_flags: tuple[str, ...] = ("-O3", "-std=c++17")
    limit_s: PositiveFloat = 120
    emulator_target: str = Field(default="sm_80", pattern=r"^sm_\d{2,3}$")
    forbidden_libraries: tuple[str, ...] = ()


class SourceRule(_Strict):
    """What a submission's source may not hold. One kind of `forbid` per rule."""

    forbid: Literal["header", "absolute_include", "call", "incbin", "inline_assembly"]
    names: tuple[str, ...] = ()
    """Of headers (`cublas*.h`) and functions (`dlopen`), with * for any characters; for the other kinds none."""
    why: str
    action: Literal["warn", "refuse"] = "refuse"

    @model_validator(mode="after")
    def _named(self) -> SourceRule:
        if (self.forbid in ("header", "call")) != bool(self.names):
            needed = "needs names" if self.forbid in ("header", "call") else "takes no names"
            raise ValueError(f"forbid: {self.forbid} {needed}")
        return self


class WallLimit(_Strict):
    """Seconds of wall time for a selection of testcases."""

    tests: str
    seconds: PositiveFloat


class Limits(_Strict):
    """What one run may take."""

    wall_s: tuple[WallLimit, ...]
    emulator_wall_s: PositiveFloat = 60
    memory_bytes: PositiveInt = 16 << 30
    processes: PositiveInt = 512
    stdout_bytes: PositiveInt = 64 * 1024


class HiddenInputs(_Strict):
    """How hidden testcases are kept hidden."""

    fresh: int = Field(default=0, ge=0)
    """So many of the hidden testcases, others in every grading, are run on a second draw of values as well."""
    fresh_from: str = "all"
    show: Literal["diagnosis", "values", "verdict"] = "diagnosis"
    """What a student reads of a wrong answer: all, no likely cause, or only that it is wrong."""


class BaselineRules(_Strict):
    """The sequential program and how long to time it per testcase."""

    source: str
    flags: tuple[str, ...] = ("-O3",)
    budget_s: PositiveFloat = 2


class TimingRules(_Strict):
    """How often a test that earns points for its time is run, and when that is enough (see grader.stopping).

    `tests` names those that are repeated; by default those that the rubric times. `warm_up` runs are not counted,
    the graded run is the first of them. A throttled run is repeated up to `throttled_retries` times.
    """

    tests: str | None = None
    budget_s: PositiveFloat = 10
    within: float = Field(default=0.01, gt=0, lt=1)
    warm_up: int = Field(default=1, ge=1, le=10)
    most: int = Field(default=40, ge=6)
    throttled_retries: int = Field(default=3, ge=0)


class FloorRules(_Strict):
    """Which units of the GPU may do the arithmetic: the fastest of them sets the least time a test could take."""

    units: tuple[Unit, ...] = Field(default=("fp32", "tf32", "fp16", "bf16"), min_length=1)


class _Part(_Strict):
    part: str = Field(pattern=r"^[a-z_]+$")
    points: PositiveFloat


class FailedTests(_Part):
    """`max(0, points - per_failure * failed)`, failed counted over the whole graded group."""

    kind: Literal["failed_tests"]
    per_failure: PositiveFloat


class LogSpeedup(_Part):
    """Linear in the logarithm of the geometric-mean speedup between two anchors."""

    kind: Literal["log_speedup"]
    tests: str
    zero_at: PositiveFloat
    full_at: PositiveFloat

    @model_validator(mode="after")
    def _anchors_in_order(self) -> LogSpeedup:
        if self.full_at <= self.zero_at:
            raise ValueError(f"full_at ({self.full_at:g}) must be greater than zero_at ({self.zero_at:g})")
        return self


class ReferenceRatio(_Part):
    """Full points for a time within `full_within` of the reference solution's, none at `zero_at` times it, linear
    in the logarithm between. The reference is a file of the assignment's reference folder, timed in the same
    session on the same GPU."""

    kind: Literal["reference_ratio"]
    tests: str
    reference: str = Field(pattern=r"^[\w.-]+\.cu$")
    full_within: float = Field(default=1.2, gt=0)
    zero_at: float = Field(default=12, gt=0)

    @model_validator(mode="after")
    def _anchors_in_order(self) -> ReferenceRatio:
        if self.zero_at <= self.full_within:
            raise ValueError(f"zero_at ({self.zero_at:g}) must be greater than full_within ({self.full_within:g})")
        return self


class Occupancy(_Part):
    """Linear in achieved occupancy up to `full_at`."""

    kind: Literal["occupancy"]
    tests: str
    full_at: float = Field(gt=0, le=1)


class Manual(_Part):
    """Entered by an assistant."""

    kind: Literal["manual"]


RubricPart = Annotated[FailedTests | LogSpeedup | ReferenceRatio | Occupancy | Manual, Field(discriminator="kind")]


class Assignment(_Strict):
    """One assignment's rules; `folder` is where its assignment.yaml lies."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: str
    operator: str
    submission: SubmissionRules
    build: BuildRules = BuildRules()
    tolerance: PositiveFloat
    limits: Limits
    hidden_inputs: HiddenInputs = HiddenInputs()
    source_rules: tuple[SourceRule, ...] = ()
    baseline: BaselineRules
    rubric: tuple[RubricPart, ...] = Field(min_length=1)
    timing: TimingRules = TimingRules()
    floor: FloorRules = FloorRules()
    metrics: tuple[str, ...] = ()

    @property
    def timed_tests(self) -> str | None:
        """The words that select the tests whose times are repeated; None when there are none."""
        if self.timing.tests is not None:
            return self.timing.tests
        parts = [part.tests for part in self.rubric if isinstance(part, LogSpeedup | ReferenceRatio)]
        return ",".join(parts) or None

    @model_validator(mode="after")
    def _parts_are_distinct(self) -> Assignment:
        names = [part.part for part in self.rubric]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ValueError(f"rubric: part {sorted(repeated)[0]!r} appears twice; each part needs its own name")
        return self

    @property
    def max_points(self) -> float:
        return sum(part.points for part in self.rubric)

    @property
    def testcases_file(self) -> Path:
        return course_root() / "testcases" / f"{self.name}.yaml"

    @property
    def reference_folder(self) -> Path:
        return course_root() / "reference" / self.name


def load_assignment_file(path: Path) -> Assignment:
    """Read one assignment.yaml. Raises UsageError naming file, key, value and what is allowed."""
    return read_yaml_model(path, Assignment)


def assignment_names() -> tuple[str, ...]:
    """Every assignment that can be graded here, by the folders that hold an assignment.yaml."""
    return tuple(sorted(path.parent.name for path in (course_root() / "assignment").glob("*/assignment.yaml")))


def load_assignment(name: str) -> Assignment:
    """The assignment called `name`."""
    names = assignment_names()
    if name not in names:
        raise UsageError(
            f"There is no assignment {name!r}: {course_root() / 'assignment'} has {', '.join(names) or 'none'}."
        )
    path = course_root() / "assignment" / name / "assignment.yaml"
    assignment = load_assignment_file(path)
    if assignment.name != name:
        raise UsageError(
            f"{shown(path)}: name is {assignment.name!r}, expected {name!r}, the name of its folder: change one."
        )
    return assignment


def assignment_for(submission: Path) -> Assignment:
    """The assignment meant when none is named: by the file's name, by the folder it lies in, or the only one."""
    names = assignment_names()
    if len(names) == 1:
        return load_assignment(names[0])
    for name in names:
        main = load_assignment(name).submission.main
        if submission.name == main or (submission / main).is_file():
            return load_assignment(name)
    for part in reversed(submission.resolve().parts):
        if part in names:
            return load_assignment(part)
    raise UsageError(
        f"It is not clear which assignment {shown(submission)} belongs to: name it with --assignment "
        f"({', '.join(names) or 'there is none here'})."
    )
