"""Defines the result record, from which every report is made, and its JSON form.

The keys are a promise to other tools (docs/record.md lists them). A value that was not measured is null, and
`not_measured` says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from grader.base.errors import MachineFault, UsageError
from grader.base.identity import Identity, described
from grader.base.paths import replacing, shown
from grader.base.verdict import Fault, Verdict
from grader.findings import Finding

MAX_FINDINGS = 20
"""The most findings kept of one test."""
Findings = Annotated[tuple[Finding, ...], Field(max_length=MAX_FINDINGS)]
SCHEMA: Literal["grader-record-2"] = "grader-record-2"
OLD_SCHEMA = "grader-record-1"
"""Of records that name only the version of their grader. They can still be read."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class GraderRecord(_Value):
    """The grader that made a record, as in `base.identity`. `commit` and `package_sha256` are '' if not known."""

    version: str
    commit: str = ""
    package_sha256: str = ""

    @staticmethod
    def of(identity: Identity) -> GraderRecord:
        return GraderRecord.model_validate(vars(identity))

    def __str__(self) -> str:
        return described(self.version, self.commit, self.package_sha256)


class SubmissionRecord(_Value):
    """The files that were graded. `sha256` covers names and contents."""

    id: str
    path: str
    sha256: str
    files: tuple[str, ...]

    @property
    def language(self) -> str:
        """The language of its kernels. A Python submission is a single file."""
        return "Triton" if self.files and all(name.endswith(".py") for name in self.files) else "CUDA"


class EngineRecord(_Value):
    """The engine that ran the submission. `facts` has the driver, compute capability and compiler."""

    name: str
    device: str
    facts: dict[str, str]


class BuildRecord(_Value):
    """The compilation of the submission. `seconds` is the time that compiling took, even if the build was `cached`."""

    ok: bool
    log: str
    seconds: float
    flags: tuple[str, ...]
    flags_from: str
    cached: bool


class BaselineRecord(_Value):
    """The sequential time behind a speedup. `description` says how it was sampled and scaled, `spread` how far apart
    the fastest runs were, as a share. `id` and `date` name the measurement; all three are null in older records."""

    seconds: float
    description: str
    source_sha256: str
    cpu: str
    spread: float | None = None
    id: str | None = None
    date: str | None = None


class TimedRunRecord(_Value):
    """One timed run. `use` is `counted`, or the reason why the run does not count (`warm-up`, `throttled`). Clocks are
    in MHz."""

    gpu_ms: float
    copy_ms: float
    idle_ms: float
    cpu_s: float
    wall_s: float
    use: Literal["counted", "warm-up", "throttled"] = "counted"
    outlier: bool = False
    sm_mhz: int | None = None
    memory_mhz: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    slowed: tuple[str, ...] = ()


class OutsideRecord(_Value):
    """Measurements by a clock outside the program, over all runs of a timing: how long the GPU was busy, how much of
    that time the traces explain, and how much an honest program may need. `source` is `GPM` or `utilisation`.
    `occupancy` is the share of active warps on busy SMs, 0..1."""

    source: str
    interval_s: float
    busy_ms: float
    traced_ms: float
    allowed_ms: float
    occupancy: float | None = None


class TimingRecord(_Value):
    """The measurement of a GPU time. The test's `gpu_ms` is the median of the counted runs, and `low_ms` to `high_ms`
    is its confidence interval. `stopped` is the branch of the stopping rule: `agreed`, `stable`, `budget` or
    `count`."""

    runs: tuple[TimedRunRecord, ...]
    median_ms: float
    low_ms: float | None = None
    high_ms: float | None = None
    confidence: float | None = None
    stopped: str
    rule: str
    notes: tuple[str, ...] = ()
    outside: OutsideRecord | None = None
    """None if the GPU has no counters that can be read from outside the program."""


class ReferenceRecord(_Value):
    """The reference solution that a test's time was compared with: its file, the SHA-256 of what was compiled, and its
    timing on the same GPU, in the same grading, on fresh inputs of the same test."""

    name: str
    sha256: str
    timing: TimingRecord


class FloorTerm(_Value):
    """A physical limit: the least time that it allows, and the source of its constants."""

    name: str
    ms: float
    source: str


class FloorRecord(_Value):
    """The least time that the GPU could need. `share` is floor / measured; `tflops` is the achieved rate."""

    ms: float
    refuse_below_ms: float
    limit: str
    terms: tuple[FloorTerm, ...]
    share: float | None = None
    tflops: float | None = None
    gbytes_per_s: float | None = None


class CornerRecord(_Value):
    """The top-left corner of an output tensor, row by row. NaN and infinities are strings in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")
    tensor: str
    unit: str
    got: tuple[tuple[float, ...], ...]
    expected: tuple[tuple[float, ...], ...]


class PrecisionRecord(_Value):
    """The largest and the root-mean-square error of an output tensor, next to those of a plain implementation. It is
    recorded if the tolerance is a multiple of the plain implementation's errors."""

    tensor: str
    largest: float
    plain_largest: float
    allowed_largest: float
    rms: float
    plain_rms: float
    allowed_rms: float

    @property
    def share(self) -> float:
        """The larger of the two errors, each as a share of what is allowed."""
        return max(self.largest / self.allowed_largest, self.rms / self.allowed_rms)

    def __str__(self) -> str:
        """ "dK: your largest error 1.9e-03, a plain implementation's 1.1e-03, allowed 2.2e-03; root mean square …" """
        return (
            f"{self.tensor}: your largest error {self.largest:.1e}, a plain implementation's {self.plain_largest:.1e}, "
            f"allowed {self.allowed_largest:.1e}; root mean square {self.rms:.1e}, a plain implementation's "
            f"{self.plain_rms:.1e}, allowed {self.allowed_rms:.1e}"
        )


class TestRecord(_Value):
    """The result of one testcase. `reason` is the sentence that a student reads. `cause` is the part of it that
    explains the failure, '' if nothing does; tests that fail in the same way share it. Times that were not measured are
    null."""

    __test__ = False  # not a test class for pytest
    name: str
    shape: tuple[int | float, ...]
    verdict: Verdict
    fault: Fault | None
    reason: str
    cause: str = ""
    findings: Findings = ()
    """What was found out about the failure, the likeliest cause first; `reason` and `cause` are its words."""
    max_error: float | None = None
    wrong_elements: int | None = None
    precision: tuple[PrecisionRecord, ...] = ()
    wall_s: float | None = None
    limit_s: float | None = None
    cpu_s: float | None = None
    """Host processor time of all processes of the graded run."""
    gpu_ms: float | None = None
    copy_ms: float | None = None
    phases_ms: dict[str, float | None] = Field(default_factory=dict)
    """The GPU time of the graded run in each of the assignment's phases; null for a phase without a kernel."""
    kernels: int | None = None
    speedup: float | None = None
    baseline: BaselineRecord | None = None
    input_digest: str | None = None
    timing: TimingRecord | None = None
    timing_refused: str = ""
    """The reason why the measured time is refused. A refused time earns no points and is not ranked."""
    floor: FloorRecord | None = None
    reference_ms: float | None = None
    reference: ReferenceRecord | None = None
    seed: str | None = None
    exit: str | None = None
    output: str = ""
    warnings: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    corners: tuple[CornerRecord, ...] = ()


class PartRecord(_Value):
    """One line of the rubric. `points` is null if it was not measured. `how` shows where the points come from, or why
    there are none. `kind` is the rubric's word, '' in older records."""

    part: str
    kind: str = ""
    points: float | None
    max: float
    how: str


class KernelRecord(_Value):
    """One kernel of a profiled run. `metrics` has min, max and mean over the profiled launches, by metric name."""

    name: str
    launches: int
    profiled: int
    gpu_ms: float
    share: float
    theoretical: float | None = None
    limiter: str = ""
    metrics: dict[str, tuple[float, float, float]] = Field(default_factory=dict)


class ProfileRecord(_Value):
    """The profile behind the occupancy score. `counted` says which kernels counted, with which weight, and which were
    left out."""

    test: str
    achieved: float | None
    reason: str = ""
    counted: tuple[str, ...] = ()
    kernels: tuple[KernelRecord, ...] = ()
    flag: str = ""
    """The reason why the profiler's value was refused; `achieved` is then the outside clock's value."""


class Scores(_Value):
    """Points by part name. `total` is null for practice and while any automatic part is not measured."""

    model_config = ConfigDict(frozen=True, extra="allow")
    total: float | None
    max: float


class MachineRecord(_Value):
    """The machine that graded the submission. `gpu_prepared` says whether the GPU was idle before the submission's
    first run."""

    host: str
    cpu: str
    confinement: str
    gpu_prepared: str = ""


class RecheckedTest(_Value):
    """One test on the second draw. `gpu_ms` is its shortest GPU time there. It is compared with `graded_ms`, the
    longest of the graded and timed runs. Both are null if times were not compared."""

    name: str
    verdict: Verdict
    reason: str = ""
    gpu_ms: float | None = None
    graded_ms: float | None = None
    flags: tuple[str, ...] = ()


class RecheckRecord(_Value):
    """Tests that were run again on a second draw before a submission gets its place on the leaderboard. `draw`
    identifies the values, which can be made again with the course's secret. `reason` says why the recheck failed."""

    created: str
    draw: str
    device: str
    passed: bool
    reason: str = ""
    tests: tuple[RecheckedTest, ...]


class CloserLookRecord(_Value):
    """One test that was run again with the emulator's checks. `cause` is the sentence on what is wrong, '' if nothing
    was found. `problem` is the reason why the look failed. `seconds` is the time that the look added after the
    tests."""

    test: str
    cause: str = ""
    problem: str = ""
    seconds: float
    findings: Findings = ()


class RescoredRecord(_Value):
    """A record whose points were computed again from its measurements, under rules that differ only in points: when, by
    which grader, and the tests that ran for it because the new rules need more measurements."""

    created: str
    grader: GraderRecord
    ran: tuple[str, ...] = ()


class Record(_Value):
    """One graded submission. `practice` is true if it ran on other testcases than the graded ones. `measured_sha256`
    is the SHA-256 of the rules without those that only decide points."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["grader-record-2"] = Field(default=SCHEMA, alias="schema")
    created: str
    grader: GraderRecord
    assignment: str
    assignment_sha256: str
    measured_sha256: str = ""
    submission: SubmissionRecord
    engine: EngineRecord
    machine: MachineRecord
    build: BuildRecord
    tests: tuple[TestRecord, ...]
    occupancy: float | None
    scores: Scores
    parts: tuple[PartRecord, ...]
    practice: bool
    not_measured: tuple[str, ...]
    notes: tuple[str, ...]
    flags: tuple[str, ...] = ()
    hidden_inputs: str = ""
    profiles: tuple[ProfileRecord, ...] = ()
    timings: dict[str, float] = Field(default_factory=dict)
    """Seconds that each stage of this grading took, and their `total`."""
    recheck: RecheckRecord | None = None
    closer_look: CloserLookRecord | None = None
    rescored: RescoredRecord | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_the_old_schema(cls, content: Any) -> Any:
        """Convert a record of the old schema."""
        if not isinstance(content, dict) or content.get("schema") != OLD_SCHEMA:
            return content
        return content | {"schema": SCHEMA, "grader": {"version": content.get("grader")}}

    @property
    def infrastructure_failed(self) -> bool:
        """Whether a fault of the grader or the machine left any test without a verdict."""
        return any(test.fault in (Fault.GRADER, Fault.MACHINE) for test in self.tests)


def write_records(records: Sequence[Record], path: Path) -> None:
    """Write one record as an object, several as a list. The file is replaced atomically. Raises MachineFault."""
    adapter: TypeAdapter[object] = TypeAdapter(Record if len(records) == 1 else list[Record])
    content = adapter.dump_json(records[0] if len(records) == 1 else list(records), indent=2, by_alias=True)
    try:
        with replacing(path) as file:
            file.write(content + b"\n")
    except OSError as error:
        raise MachineFault(
            f"The result could not be written to {shown(path)}: {error.strerror}; choose another path with --json."
        ) from error


def read_records(path: Path) -> tuple[Record, ...]:
    """Read a file that holds one record or a list of records. Raises UsageError if it holds neither."""
    try:
        content = path.read_bytes()
        if content.lstrip()[:1] == b"[":
            return tuple(TypeAdapter(list[Record]).validate_json(content))
        return (Record.model_validate_json(content),)
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise UsageError(f"{shown(path)} is not a record of this grader: at {where}, {first['msg']}.") from error


def read_record(path: Path) -> Record:
    """Read a file that holds one record. Raises UsageError if it holds something else."""
    records = read_records(path)
    if len(records) != 1:
        raise UsageError(f"{shown(path)} holds {len(records)} records: give a file that holds one.")
    return records[0]
