"""Reads assignment.yaml: how a submission is named, built, limited and scored.

Everything that an instructor can set is a field of a pydantic model in this module. An invalid file raises one
`UsageError` that names the file, the key, the value and what is allowed.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AliasChoices,
    AwareDatetime,
    BeforeValidator,
    ConfigDict,
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
from grader.course.testcase import EVERY, PUBLIC
from grader.operators import course_operator
from grader.operators.tolerance import ErrorRule, TimesPlain

_LONGEST_S = 86_400.0
"""The longest time that can be set: more than a day must be a typo, and Python's timeouts have a maximum too."""

Seconds = Annotated[float, Field(gt=0, le=_LONGEST_S)]
Line = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$", max_length=300)]
"""One line of text, not blank."""
Unit = Literal["fp32", "tf32", "tf32x3", "fp16", "bf16", "bf16x3", "fp8"]
"""The number formats in which the GPU may compute. x3 means that each factor is split into parts, and three products
replace one, for nearly the accuracy of FP32 (Henry, Tang and Heinecke, Leveraging the bfloat16 AI datatype, 2019;
Ootomo and Yokota, 2022)."""


class SubmissionRules(StrictModel):
    """The files that a student may submit."""

    model_config = ConfigDict(populate_by_name=True)
    mains: tuple[Annotated[str, Field(pattern=r"^\w[\w.-]*\.(cu|py)$")], ...] = Field(alias="main", min_length=1)
    """The program's file name, or one name for each language: [half.cu, half.py]."""
    max_files: PositiveInt = 64
    max_bytes: PositiveInt = 2 * 1024 * 1024
    id_pattern: str | None = None
    """For classes: a regular expression that matches the whole name of a student's file or folder; its group `id` is
    the student's id."""
    counts: Literal["latest", "best"] = "latest"
    """For classes: which of a student's attempts counts, unless --best or --latest says otherwise."""

    @field_validator("mains", mode="before")
    @classmethod
    def _one_or_several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @property
    def main(self) -> str:
        """The file name of the CUDA program, or the first name if there is none."""
        return next((name for name in self.mains if name.endswith(".cu")), self.mains[0])

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


EmulatedArchitecture = Literal["sm_80", "sm_89", "sm_90a"]
"""The GPUs that the emulator can stand for: an A100, an L40S, an H200."""


class BuildRules(StrictModel):
    """The rules for compiling a submission."""

    default_flags: tuple[Line, ...] = ("-O3", "-std=c++17")
    limit_s: Seconds = 120
    emulator_target: EmulatedArchitecture = "sm_80"
    forbidden_libraries: tuple[Line, ...] = ()
    dynamic_parallelism: bool = False
    """Whether kernels may launch kernels. The tracer does not see kernels launched in this way, so their time does not
    count."""


class SourceRule(StrictModel):
    """Something that a submission's source must not contain; `forbid` is its kind."""

    forbid: Literal["header", "absolute_include", "call", "incbin", "inline_assembly"]
    names: tuple[Line, ...] = ()
    """Names of headers (`cublas*.h`) or functions (`dlopen`), with * for any characters; empty for the other kinds."""
    why: Line
    action: Literal["warn", "refuse"] = "refuse"

    @model_validator(mode="after")
    def _named(self) -> SourceRule:
        if (self.forbid in ("header", "call")) != bool(self.names):
            needed = "needs names" if self.forbid in ("header", "call") else "takes no names"
            raise ValueError(f"forbid: {self.forbid} {needed}")
        return self


class TimeLimit(StrictModel):
    """A limit in seconds on a run's time, for a selection of testcases."""

    tests: str
    seconds: Seconds


def _limits(value: object) -> object:
    return [{"tests": EVERY, "seconds": value}] if isinstance(value, int | float) else value


class Limits(StrictModel):
    """The limits of one run. `wall_s` on a GPU, and `emulator_cpu_s` of processor time on the emulator, are one number
    for all testcases, or one for each selection; of two that select a testcase, the first counts."""

    wall_s: Annotated[tuple[TimeLimit, ...], BeforeValidator(_limits)]
    emulator_wall_s: Seconds = 60
    emulator_cpu_s: Annotated[tuple[TimeLimit, ...], BeforeValidator(_limits)] = (TimeLimit(tests=PUBLIC, seconds=10),)
    memory_bytes: int = Field(default=16 << 30, ge=1 << 20)
    processes: int = Field(default=512, gt=0, le=1 << 22)
    stdout_bytes: int = Field(default=64 * 1024, gt=0, le=1 << 30)


class Deadline(StrictModel):
    """The deadline, and the penalty for lateness: `penalty_per_day` is a share of all points, for each day or part of a
    day."""

    due: AwareDatetime
    grace_minutes: float = Field(default=0, ge=0, le=_LONGEST_S)
    free_days: NonNegativeInt = 0
    penalty_per_day: float = Field(default=0, ge=0, le=1)
    max_days: NonNegativeInt | None = None
    """A submission that is later than this earns no points. None: `penalty_per_day` applies, no matter how late it
    is."""


class Cluster(StrictModel):
    """The machines that `--cluster slurm` requests. Most keys are sbatch options of the same name."""

    partition: str | None = None
    account: str | None = None
    constraint: str | None = None
    gres: str | None = "gpu:1"
    time_minutes: PositiveInt = 60
    cpus: PositiveInt = 4
    memory_gb: PositiveInt | None = None
    at_once: PositiveInt = 64
    """The maximum number of tasks of the job array that run at the same time."""
    retries: NonNegativeInt = 2
    folder: str = "results/slurm"
    """A folder that has this path on all nodes and on the submitting machine."""


class UploadLimit(StrictModel):
    """How often one student may submit: `runs` times within `window_hours`; None for no limit."""

    runs: PositiveInt | None = None
    window_hours: float = Field(default=24, gt=0, le=_LONGEST_S)


class Gradescope(UploadLimit):
    """The presentation of results on Gradescope. The values of `hidden_tests` are Gradescope's words."""

    hidden_tests: Literal["hidden", "after_due_date", "after_published", "visible"] = "after_published"
    leaderboard: bool = True


class JudgeRules(UploadLimit):
    """The limits of the live judge (`grader serve`) on uploads."""

    max_upload_bytes: int = Field(default=4 << 20, ge=1 << 10, le=16 << 20)
    """The maximum size of one upload, packed or not; `submission.max_bytes` limits its contents."""
    runs: PositiveInt | None = Field(default=30, validation_alias=AliasChoices("runs", "per_hour"))
    """Its older name is `per_hour`."""
    window_hours: float = Field(default=1, gt=0, le=_LONGEST_S)


class HiddenInputs(StrictModel):
    """The protection of hidden testcases."""

    fresh: int = Field(default=0, ge=0)
    """The number of hidden testcases that also run on a second draw of values. Each grading chooses them at random."""
    fresh_from: str = "all"
    show: Literal["diagnosis", "values", "verdict"] = "diagnosis"
    """The details of a wrong answer that a student may read: all of them, all but the likely cause, or only the
    verdict."""


class BaselineRules(StrictModel):
    """The sequential program, and how long it is timed. Without `rate_by`, every testcase is timed. If the program's
    time is proportional to the operations among testcases that agree in the dimensions named there, one of them is."""

    source: str = Field(pattern=r"^\w[\w.-]*\.c$")
    flags: tuple[Line, ...] = ("-O3",)
    budget_s: Seconds = 2
    rate_by: tuple[str, ...] = ()


class Phase(StrictModel):
    """A part of a program's GPU time: the kernels whose name matches the regular expression `kernels` anywhere, in
    upper or lower case."""

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
    """How often a test is run to measure its time (see grader.timing.stopping).

    `tests` names the tests that are repeated, by default those that the rubric times. `warm_up` runs do not count
    unless they agree with the others; the graded run is the first of them. Repetition ends when the median is known to
    within the share `within`, after `most` runs, or when all runs of the test have taken `budget_s` of wall time. A
    throttled run is repeated up to `throttled_retries` times.
    """

    tests: str | None = None
    budget_s: Seconds = 10
    within: float = Field(default=0.01, ge=1e-6, lt=1)
    warm_up: int = Field(default=1, ge=1, le=10)
    most: int = Field(default=40, ge=6, le=10_000)
    throttled_retries: int = Field(default=3, ge=0, le=100)


class FloorRules(StrictModel):
    """The number formats in which the GPU may compute. The fastest of them determines the floor of a test's time."""

    units: tuple[Unit, ...] = Field(default=("fp32", "tf32", "fp16", "bf16"), min_length=1)


class _Part(StrictModel):
    part: str = Field(pattern=r"^[a-z_]+$")
    points: PositiveFloat


class FailedTests(_Part):
    """`max(0, points - per_failure * failed)`, where `failed` is the number of failed tests in the whole graded
    group."""

    kind: Literal["failed_tests"]
    per_failure: PositiveFloat


class LogSpeedup(_Part):
    """Points grow with the logarithm of the geometric-mean speedup, from none at `zero_at` to all at `full_at`."""

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
    """Full points for a time up to `full_within` times that of the reference solution, none from `zero_at` times on,
    and linear in the logarithm between the two. The reference is a file in the assignment's reference folder, or in
    another assignment's (half/mma.cu), timed in the same grading on the same GPU."""

    kind: Literal["reference_ratio"]
    tests: str
    reference: str = Field(pattern=r"^(\w+/)?\w[\w.-]*\.cu$")
    full_within: float = Field(default=1.2, gt=0)
    zero_at: float = Field(default=12, gt=0)

    @model_validator(mode="after")
    def _anchors_in_order(self) -> ReferenceRatio:
        if self.zero_at <= self.full_within:
            raise ValueError(f"zero_at ({self.zero_at:g}) must be greater than full_within ({self.full_within:g})")
        return self


class SpeedOfLight(_Part):
    """Points grow linearly with how near the time is to the floor, the least that the GPU could need: none up to a
    share of `zero_at`, all from `full_at` on."""

    kind: Literal["speed_of_light"]
    tests: str
    zero_at: float = Field(default=0, ge=0, lt=1)
    full_at: float = Field(gt=0, le=1)

    @model_validator(mode="after")
    def _anchors_in_order(self) -> SpeedOfLight:
        if self.full_at <= self.zero_at:
            raise ValueError(f"full_at ({self.full_at:g}) must be greater than zero_at ({self.zero_at:g})")
        return self


class Occupancy(_Part):
    """Points grow linearly with achieved occupancy, from none at 0 to all at `full_at`."""

    kind: Literal["occupancy"]
    tests: str
    full_at: float = Field(gt=0, le=1)


class Manual(_Part):
    """Points entered by an assistant."""

    kind: Literal["manual"]


TimedPart = LogSpeedup | ReferenceRatio | SpeedOfLight
"""Parts whose tests are timed repeatedly."""
RubricPart = Annotated[FailedTests | TimedPart | Occupancy | Manual, Field(discriminator="kind")]


def _a_tolerance(value: Any) -> Any:
    if isinstance(value, dict) and "times_plain" in value:
        return TimesPlain.model_validate(value)
    if isinstance(value, dict) and set(value) <= set(ErrorRule.model_fields):
        return ErrorRule.model_validate(value)
    if isinstance(value, dict) and value:
        return {name: _of_one_tensor(each) for name, each in value.items()}
    return _of_one_tensor(value)


def _of_one_tensor(value: Any) -> Any:
    if isinstance(value, dict) and value:
        return ErrorRule.model_validate(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError(
            "expected a number greater than 0, a rule such as {exact: true} or {relative: 1.0e-5}, one of these for "
            "each output tensor by name, or times_plain with a factor"
        )
    return value


ToleranceRule = Annotated[float | ErrorRule | dict[str, float | ErrorRule] | TimesPlain, BeforeValidator(_a_tolerance)]
"""The largest |got − expected| that passes: one number or rule for all output tensors, or one for each tensor by name.
The operator multiplies it by a magnitude that depends on the shape (`Operator.magnitude`). A `TimesPlain` instead
allows a multiple of the errors of a plain implementation (`Operator.plain`)."""


class GradeRules(StrictModel):
    """The keys of an assignment on which a grade depends. The operator, the program and the baseline have the
    assignment's name if the file has no others."""

    name: str = Field(pattern=r"^[a-z0-9_]+$")
    title: Line
    operator: str
    submission: SubmissionRules
    contract: Literal["program", "function", "either"] = "program"
    """What a CUDA submission is: a program that reads INPUT and writes OUTPUT, or the function `solve` on device
    pointers (grader.programs.function_contract). `either`: a function, unless it defines `main`."""
    build: BuildRules = BuildRules()
    tolerance: ToleranceRule
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
    """Whether commands that name no assignment use this one; at most one assignment of a course may be the default."""

    @model_validator(mode="before")
    @classmethod
    def _of_its_name(cls, data: object) -> object:
        if isinstance(data, dict) and isinstance(name := data.get("name"), str):
            named: dict[str, object] = {
                "operator": name,
                "submission": {"main": f"{name}.cu"},
                "baseline": {"source": f"seq_{name}.c"},
            }
            for key, default in named.items():
                given = data.get(key, default)
                named[key] = {**default, **given} if isinstance(default, dict) and isinstance(given, dict) else given
            return {**data, **named}
        return data

    @model_validator(mode="after")
    def _parts_are_distinct(self) -> GradeRules:
        names = [part.part for part in self.rubric]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ValueError(f"rubric: part {sorted(repeated)[0]!r} appears twice; each part needs its own name")
        return self

    @model_validator(mode="after")
    def _there_is_one_reference(self) -> GradeRules:
        names = sorted({part.reference for part in self.rubric if isinstance(part, ReferenceRatio)})
        if len(names) > 1:
            raise ValueError(f"rubric: {' and '.join(names)} are both references; a test can be compared with only one")
        return self


class Assignment(GradeRules):
    """An assignment, from its assignment.yaml: the rules of a grade, and the organisation of the class, which may
    change without a new grading."""

    deadline: Deadline | None = None
    cluster: Cluster | None = None
    exceptions: dict[str, Line] = Field(default_factory=dict)
    """What `grader assignments verify` lets pass, by the name that it reports, and why."""
    gradescope: Gradescope = Gradescope()
    judge: JudgeRules = JudgeRules()

    @property
    def rules_sha256(self) -> str:
        """The SHA-256 of all rules that a grade depends on."""
        return self._sha256_without()

    @property
    def measured_sha256(self) -> str:
        """The SHA-256 of the rules that decide what is run and how it is judged. It also leaves out the rubric, whose
        points follow from what was measured, and the words that people read."""
        return self._sha256_without("rubric", "title", "default", "metrics")

    def _sha256_without(self, *keys: str) -> str:
        of_the_class = {"submission": {"id_pattern", "counts"}}
        rules = self.model_dump_json(include=GradeRules.model_fields.keys() - set(keys), exclude=of_the_class)
        if (own := course_operator(self.operator)) is not None:
            rules += own.read_text(encoding="utf-8")
        return hashlib.sha256(rules.encode()).hexdigest()

    @property
    def timed_tests(self) -> str | None:
        """The selection of the tests whose times are measured repeatedly; None if there are none."""
        if self.timing.tests is not None:
            return self.timing.tests
        parts = [part.tests for part in self.rubric if isinstance(part, TimedPart)]
        return ",".join(parts) or None

    @property
    def max_points(self) -> float:
        return sum(part.points for part in self.rubric)

    @property
    def testcases_file(self) -> Path:
        return course_root() / "testcases" / f"{self.name}.yaml"

    @property
    def reference_folder(self) -> Path:
        return course_root() / "reference" / self.name

    def reference_file(self, name: str) -> Path:
        """The file that the rubric calls `name`."""
        return (self.reference_folder.parent if "/" in name else self.reference_folder) / name

    @property
    def reference_folders(self) -> tuple[Path, ...]:
        """The folders of the baseline and of the reference solution."""
        parts = [part for part in self.rubric if isinstance(part, ReferenceRatio)]
        others = {self.reference_file(part.reference).parent for part in parts} - {self.reference_folder}
        return (self.reference_folder, *sorted(others))


def load_assignment_file(path: Path) -> Assignment:
    """Read one assignment.yaml. Raises UsageError with the file, the key, the value and what is allowed."""
    return read_yaml_model(path, Assignment)


def assignment_names() -> tuple[str, ...]:
    """The names of all assignments that can be graded here: the folders that hold an assignment.yaml."""
    return tuple(sorted(path.parent.name for path in (course_root() / "assignment").glob("*/assignment.yaml")))


def title_of(name: str) -> str:
    """The title of an assignment, or `name` itself if the course no longer has this assignment."""
    return load_assignment(name).title if name in assignment_names() else name


def load_assignment(name: str) -> Assignment:
    """Load the assignment called `name`. Raises UsageError if there is none."""
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
    """The assignment for a command that names none: the one in GRADER_ASSIGNMENT, else the only one, else the one whose
    YAML file says `default: true`. Raises UsageError if none of these decides."""
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
    """The assignment that a submission belongs to if the command names none: by the name of the file, or of a folder
    around it, or else the default."""
    names = assignment_names()
    for name in names if len(names) > 1 else ():
        for main in load_assignment(name).submission.mains:
            if submission.name == main or (submission / main).is_file():
                return load_assignment(name)
    for part in reversed(submission.resolve().parts):
        if part in names:
            return load_assignment(part)
    return default_assignment()


def chosen_assignment(name: str | None, submission: Path | None = None) -> Assignment:
    """The assignment called `name`, or else the one that `submission` belongs to, or else the default."""
    if name:
        return load_assignment(name)
    return default_assignment() if submission is None else assignment_for(submission)
