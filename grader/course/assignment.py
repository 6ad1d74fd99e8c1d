"""assignment.yaml → Assignment: how a submission is named, built, limited and scored.

Everything an instructor sets is a field of a pydantic model here. An invalid file raises one `UsageError` that names
the file, the key, the value found and what is allowed.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from grader.base.errors import UsageError
from grader.base.paths import course_root, shown
from grader.base.yaml_model import StrictModel, read_yaml_model

_LONGEST_S = 86_400.0
"""A limit of more than a day is a typing error; Python's clocks end somewhere too."""

Seconds = Annotated[float, Field(gt=0, le=_LONGEST_S)]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$", max_length=300)]
"""A text of one line that is not blank."""
Unit = Literal["fp32", "tf32", "tf32x3", "fp16", "bf16", "bf16x3"]
"""What may do the arithmetic. x3: each factor split into parts, three products for one, for nearly FP32's accuracy
(Henry, Tang and Heinecke, Leveraging the bfloat16 AI datatype, 2019; Ootomo and Yokota, 2022)."""


class SubmissionRules(StrictModel):
    """What a student may hand in."""

    main: str = Field(pattern=r"^\w[\w.-]*\.cu$")
    max_files: PositiveInt = 64
    max_bytes: PositiveInt = 2 * 1024 * 1024
    id_pattern: str | None = None
    """In a class: a regular expression that a file's or folder's whole name matches; its group `id` is the student."""

    @field_validator("id_pattern")
    @classmethod
    def _names_an_id(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                groups = re.compile(pattern).groupindex
            except re.error as error:
                raise ValueError(f"it is not a regular expression: {error}") from error
            if "id" not in groups:
                raise ValueError("it needs a group (?P<id>...) that holds the student's id")
        return pattern


class BuildRules(StrictModel):
    """How a submission is compiled."""

    default_flags: tuple[Line, ...] = ("-O3", "-std=c++17")
    limit_s: Seconds = 120
    emulator_target: str = Field(default="sm_80", pattern=r"^sm_\d{2,3}$")
    forbidden_libraries: tuple[Line, ...] = ()
    dynamic_parallelism: bool = False
    """Whether kernels may launch kernels. The tracer doesn't see those, so their time doesn't count."""


class SourceRule(StrictModel):
    """What a submission's source must not contain. One kind of `forbid` per rule."""

    forbid: Literal["header", "absolute_include", "call", "incbin", "inline_assembly"]
    names: tuple[Line, ...] = ()
    """Headers (`cublas*.h`) or functions (`dlopen`), with * for any characters; empty for the other kinds."""
    why: Line
    action: Literal["warn", "refuse"] = "refuse"

    @model_validator(mode="after")
    def _named(self) -> SourceRule:
        if (self.forbid in ("header", "call")) != bool(self.names):
            needed = "needs names" if self.forbid in ("header", "call") else "takes no names"
            raise ValueError(f"forbid: {self.forbid} {needed}")
        return self


class WallLimit(StrictModel):
    """Seconds of wall time for a selection of testcases."""

    tests: str
    seconds: Seconds


class Limits(StrictModel):
    """What one run may use."""

    wall_s: tuple[WallLimit, ...]
    emulator_wall_s: Seconds = 60
    memory_bytes: int = Field(default=16 << 30, ge=1 << 20)
    processes: int = Field(default=512, gt=0, le=1 << 22)
    stdout_bytes: int = Field(default=64 * 1024, gt=0, le=1 << 30)


class Deadline(StrictModel):
    """When work is due, and what lateness costs. `penalty_per_day` is a share of all points, per begun day."""

    due: AwareDatetime
    grace_minutes: float = Field(default=0, ge=0, le=_LONGEST_S)
    free_days: NonNegativeInt = 0
    penalty_per_day: float = Field(default=0, ge=0, le=1)
    max_days: NonNegativeInt | None = None
    """Later than this gives no points; None: however late, `penalty_per_day` applies."""


class Cluster(StrictModel):
    """How `--cluster slurm` asks for machines; each key is the sbatch option of that name."""

    partition: str | None = None
    account: str | None = None
    constraint: str | None = None
    gres: str | None = "gpu:1"
    time_minutes: PositiveInt = 60
    cpus: PositiveInt = 4
    memory_gb: PositiveInt | None = None
    at_once: PositiveInt = 64
    """How many tasks of the array run at the same time at most."""
    retries: NonNegativeInt = 2
    folder: str = "results/slurm"
    """A folder that all nodes and the submitting machine see under this path."""


class Gradescope(StrictModel):
    """How results appear on Gradescope. Visibilities are Gradescope's own words."""

    hidden_tests: Literal["hidden", "after_due_date", "after_published", "visible"] = "after_published"
    leaderboard: bool = True
    runs: PositiveInt | None = None
    """At most this many graded runs of a student within `window_hours`; None: no limit."""
    window_hours: float = Field(default=24, gt=0, le=_LONGEST_S)


class HiddenInputs(StrictModel):
    """How hidden testcases are kept hidden."""

    fresh: int = Field(default=0, ge=0)
    """How many hidden testcases, chosen anew in every grading, also run on a second draw of values."""
    fresh_from: str = "all"
    show: Literal["diagnosis", "values", "verdict"] = "diagnosis"
    """What a student may read about a wrong answer: everything, no likely cause, or the verdict alone."""


class BaselineRules(StrictModel):
    """The sequential program and how long to time it per testcase."""

    source: str = Field(pattern=r"^\w[\w.-]*\.c$")
    flags: tuple[Line, ...] = ("-O3",)
    budget_s: Seconds = 2


class Phase(StrictModel):
    """A part of a program's GPU time: the kernels whose name holds the regular expression `kernels`, in any case."""

    name: str = Field(pattern=r"^[a-z_]+$")
    kernels: str

    @field_validator("kernels")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"this is not a regular expression ({error})") from error
        return pattern


class TimingRules(StrictModel):
    """How often a test that earns points for its time is run, and when that is enough (see grader.timing.stopping).

    `tests` names those that are repeated; by default those that the rubric times. `warm_up` runs are not counted,
    the graded run is the first of them. `budget_s` is of wall time, for all runs of a test. A throttled run is repeated
    up to `throttled_retries` times.
    """

    tests: str | None = None
    budget_s: Seconds = 10
    within: float = Field(default=0.01, ge=1e-6, lt=1)
    warm_up: int = Field(default=1, ge=1, le=10)
    most: int = Field(default=40, ge=6, le=10_000)
    throttled_retries: int = Field(default=3, ge=0, le=100)


class FloorRules(StrictModel):
    """Which units of the GPU may do the arithmetic: the fastest of them sets the least time a test could take."""

    units: tuple[Unit, ...] = Field(default=("fp32", "tf32", "fp16", "bf16"), min_length=1)


class _Part(StrictModel):
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
    reference: str = Field(pattern=r"^\w[\w.-]*\.cu$")
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


def _a_tolerance(value: Any) -> Any:
    numbers = list(value.values()) if isinstance(value, dict) else [value]
    if not numbers or any(
        isinstance(n, bool) or not isinstance(n, int | float) or not 0 < n < math.inf for n in numbers
    ):
        raise ValueError("expected a number greater than 0, or one such number for each output tensor by its name")
    return value


Tolerance = Annotated[float | dict[str, float], BeforeValidator(_a_tolerance)]
"""The largest |got − expected| that passes: one for all output tensors, or one for each by name. The operator
multiplies it by the magnitude that a shape has (`Operator.magnitude`)."""


class Assignment(StrictModel):
    """One assignment's rules; `folder` is where its assignment.yaml lies."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: Line
    operator: str
    submission: SubmissionRules
    build: BuildRules = BuildRules()
    tolerance: Tolerance
    limits: Limits
    hidden_inputs: HiddenInputs = HiddenInputs()
    source_rules: tuple[SourceRule, ...] = ()
    baseline: BaselineRules
    rubric: tuple[RubricPart, ...] = Field(min_length=1)
    timing: TimingRules = TimingRules()
    floor: FloorRules = FloorRules()
    metrics: tuple[Line, ...] = ()
    phases: tuple[Phase, ...] = ()
    default: bool = False
    """Whether commands that name no assignment mean this one; at most one assignment of a course may say so."""
    deadline: Deadline | None = None
    cluster: Cluster | None = None
    gradescope: Gradescope = Gradescope()

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

    @model_validator(mode="after")
    def _there_is_one_reference(self) -> Assignment:
        names = sorted({part.reference for part in self.rubric if isinstance(part, ReferenceRatio)})
        if len(names) > 1:
            raise ValueError(f"rubric: {' and '.join(names)} are both references; a test has the time of one only")
        return self

    @property
    def rules_sha256(self) -> str:
        """The SHA-256 of all rules that a grade depends on. Deadlines and the class's organisation are left out: they
        may change without a new grading."""
        rules = self.model_dump_json(
            exclude={"deadline": True, "cluster": True, "gradescope": True, "submission": {"id_pattern"}}
        )
        return hashlib.sha256(rules.encode()).hexdigest()

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


def title_of(name: str) -> str:
    """An assignment's title; its name where this course does not have it any more."""
    return load_assignment(name).title if name in assignment_names() else name


def load_assignment(name: str) -> Assignment:
    """The assignment called `name`."""
    names = assignment_names()
    if name not in names:
        raise UsageError(
            f"Unknown assignment {name!r}: {course_root() / 'assignment'} has {', '.join(names) or 'none'}."
        )
    path = course_root() / "assignment" / name / "assignment.yaml"
    assignment = load_assignment_file(path)
    if assignment.name != name:
        raise UsageError(
            f"{shown(path)}: name is {assignment.name!r}, expected {name!r}, the name of its folder: change one."
        )
    return assignment


def default_assignment() -> Assignment:
    """The assignment meant by a command that names none: GRADER_ASSIGNMENT, else the only one, else the one whose
    YAML says `default: true`. Raises UsageError when none of these decides."""
    if chosen := os.environ.get("GRADER_ASSIGNMENT"):
        return load_assignment(chosen)
    names = assignment_names()
    if len(names) == 1:
        return load_assignment(names[0])
    defaults = [rules for rules in map(load_assignment, names) if rules.default]
    if len(defaults) == 1:
        return defaults[0]
    why = f"{' and '.join(rules.name for rules in defaults)} all say `default: true`; " if defaults else ""
    raise UsageError(f"Which assignment? {why}name one with --assignment: {', '.join(names) or 'there is none here'}.")


def assignment_for(submission: Path) -> Assignment:
    """The assignment that a submission belongs to when none is named: by the file's name, by the folder it lies in,
    else the default."""
    names = assignment_names()
    for name in names if len(names) > 1 else ():
        main = load_assignment(name).submission.main
        if submission.name == main or (submission / main).is_file():
            return load_assignment(name)
    for part in reversed(submission.resolve().parts):
        if part in names:
            return load_assignment(part)
    return default_assignment()


def chosen_assignment(name: str | None, submission: Path | None = None) -> Assignment:
    """The assignment that is named, else the one that `submission` belongs to, else the default."""
    if name:
        return load_assignment(name)
    return default_assignment() if submission is None else assignment_for(submission)
