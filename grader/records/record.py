"""Defines the result record, from which every report is made, and its JSON form.

The keys are a promise to other tools (docs/record.md lists them). A value that was not measured is null, and
`not_measured` says why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, FailFast, Field, TypeAdapter, ValidationError, model_validator

from grader.base.errors import MachineFault, UsageError
from grader.base.identity import Identity, described
from grader.base.paths import replacing, shown
from grader.base.sizes import MAX_NAME, AtMost, Count, Digest, Name, Names, Sentence, Sentences, Text, Time, Whole
from grader.base.verdict import Fault, Verdict
from grader.findings import Finding
from grader.sandbox.room import Exceeded, Unreadable, confined

MANUAL = "entered by an assistant"
"""The beginning of `how` in a rubric part that a person fills in."""
MAX_FINDINGS = 20
"""The most findings kept of one test."""
Findings = Annotated[tuple[Finding, ...], AtMost(MAX_FINDINGS)]
MAX_FILE_BYTES = 256 << 20
"""Limit for a file of records: a class has hundreds of them."""
SCHEMA: Literal["grader-record-2"] = "grader-record-2"
OLD_SCHEMA = "grader-record-1"
"""Of records that name only the version of their grader. They can still be read."""


MAX_RECORD_BYTES = 16 << 20
"""No JSON of a record is longer: its types bound every text and list, and `disclosure.fitting` their sum."""
MAX_TESTS = 1000
_MAX_KEYS = 200
MAX_RUNS = 10_000
MAX_TENSORS = 16
MAX_KERNELS = 1000
MAX_PARTS = 100
MAX_CORNER = 64
Corner = Annotated[tuple[Annotated[tuple[float, ...], AtMost(MAX_CORNER)], ...], AtMost(MAX_CORNER)]


Number = Annotated[float, Field(ge=-1e9, le=1e9)]
"""Of points, whose sums and shares are drawn."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _few_keys(cls, content: Any) -> Any:
        """Refuse an object with very many keys at once: pydantic would describe each of them."""
        if isinstance(content, dict) and len(content) > _MAX_KEYS:
            raise ValueError(f"expected at most {_MAX_KEYS} keys, found {len(content):,}")
        return content

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, whose changed fields are validated too: they may quote a submission."""
        return type(self).model_validate(dict(self) | dict(update or {}))


class GraderRecord(_Value):
    """The grader that made a record, as in `base.identity`. `commit` and `package_sha256` are '' if not known."""

    version: Name
    commit: Name = ""
    package_sha256: Digest = ""

    @staticmethod
    def of(identity: Identity) -> GraderRecord:
        return GraderRecord.model_validate(vars(identity))

    def __str__(self) -> str:
        return described(self.version, self.commit, self.package_sha256)


class SubmissionRecord(_Value):
    """The files that were graded. `sha256` covers names and contents."""

    id: Name
    path: Sentence
    sha256: Digest
    files: Names

    @property
    def language(self) -> str:
        """The language of its kernels. A Python submission is a single file."""
        return "Triton" if self.files and all(name.endswith(".py") for name in self.files) else "CUDA"


class EngineRecord(_Value):
    """The engine that ran the submission. `facts` has the driver, compute capability and compiler."""

    name: Name
    device: Name
    facts: Annotated[dict[Name, Sentence], AtMost(40)]


class BuildRecord(_Value):
    """The compilation of the submission. `seconds` is the time that compiling took, even if the build was `cached`."""

    ok: bool
    log: Text
    seconds: float
    flags: Names
    flags_from: Name
    cached: bool


class BaselineRecord(_Value):
    """The sequential time behind a speedup. `description` says how it was sampled and scaled, `spread` how far apart
    the fastest runs were, as a share. `id` and `date` name the measurement; all three are null in older records."""

    seconds: Annotated[float, Field(gt=0)]
    description: Sentence
    source_sha256: Digest
    cpu: Name
    spread: float | None = None
    id: Name | None = None
    date: Name | None = None


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
    sm_mhz: Whole | None = None
    memory_mhz: Whole | None = None
    temperature_c: Whole | None = None
    power_w: float | None = None
    slowed: Sentences = ()


class OutsideRecord(_Value):
    """Measurements by a clock outside the program, over all runs of a timing: how long the GPU was busy, how much of
    that time the traces explain, and how much an honest program may need. `source` is `GPM` or `utilisation`.
    `occupancy` is the share of active warps on busy SMs, 0..1."""

    source: Name
    interval_s: float
    busy_ms: float
    traced_ms: float
    allowed_ms: float
    occupancy: float | None = None


class TimingRecord(_Value):
    """The measurement of a GPU time. The test's `gpu_ms` is the median of the counted runs, and `low_ms` to `high_ms`
    is its confidence interval. `stopped` is the branch of the stopping rule: `agreed`, `stable`, `budget` or
    `count`."""

    runs: Annotated[tuple[TimedRunRecord, ...], Field(max_length=MAX_RUNS), FailFast()]
    median_ms: float
    low_ms: float | None = None
    high_ms: float | None = None
    confidence: float | None = None
    stopped: Name
    rule: Sentence
    notes: Sentences = ()
    outside: OutsideRecord | None = None
    """None if the GPU has no counters that can be read from outside the program."""


class ReferenceRecord(_Value):
    """The reference solution that a test's time was compared with: its file, the SHA-256 of what was compiled, and its
    timing on the same GPU, in the same grading, on fresh inputs of the same test."""

    name: Name
    sha256: Digest
    timing: TimingRecord


class FloorTerm(_Value):
    """A physical limit: the least time that it allows, and the source of its constants."""

    name: Name
    ms: float
    source: Name


class FloorRecord(_Value):
    """The least time that the GPU could need. `share` is floor / measured; `tflops` is the achieved rate."""

    ms: float
    refuse_below_ms: float
    limit: Name
    terms: Annotated[tuple[FloorTerm, ...], Field(max_length=20), FailFast()]
    share: float | None = None
    tflops: float | None = None
    gbytes_per_s: float | None = None


class CornerRecord(_Value):
    """The top-left corner of an output tensor, row by row. NaN and infinities are strings in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="strings")
    tensor: Name
    unit: Name
    got: Corner
    expected: Corner


class PrecisionRecord(_Value):
    """The largest and the root-mean-square error of an output tensor, next to those of a plain implementation. It is
    recorded if the tolerance is a multiple of the plain implementation's errors."""

    tensor: Name
    largest: float
    plain_largest: float
    allowed_largest: float
    rms: float
    plain_rms: float
    allowed_rms: float

    @property
    def share(self) -> float:
        """The larger of the two errors, each as a share of what is allowed."""
        errors = ((self.largest, self.allowed_largest), (self.rms, self.allowed_rms))
        return max((error / allowed if allowed else math.inf for error, allowed in errors if error), default=0.0)

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
    name: Name
    shape: Annotated[tuple[Whole | float, ...], Field(max_length=20)]
    verdict: Verdict
    fault: Fault | None
    reason: Sentence
    cause: Sentence = ""
    findings: Findings = ()
    """What was found out about the failure, the likeliest cause first; `reason` and `cause` are its words."""
    max_error: float | None = None
    wrong_elements: Whole | None = None
    precision: Annotated[tuple[PrecisionRecord, ...], Field(max_length=MAX_TENSORS), FailFast()] = ()
    wall_s: float | None = None
    limit_s: float | None = None
    cpu_s: float | None = None
    """Host processor time of all processes of the graded run."""
    gpu_ms: float | None = None
    copy_ms: float | None = None
    phases_ms: Annotated[dict[Name, float | None], AtMost(40)] = Field(default_factory=dict)
    """The GPU time of the graded run in each of the assignment's phases; null for a phase without a kernel."""
    kernels: Whole | None = None
    speedup: float | None = None
    baseline: BaselineRecord | None = None
    input_digest: Digest | None = None
    timing: TimingRecord | None = None
    timing_refused: Sentence = ""
    """The reason why the measured time is refused. A refused time earns no points and is not ranked."""
    floor: FloorRecord | None = None
    reference_ms: float | None = None
    reference: ReferenceRecord | None = None
    seed: Name | None = None
    exit: Name | None = None
    output: Text = ""
    warnings: Sentences = ()
    flags: Sentences = ()
    corners: Annotated[tuple[CornerRecord, ...], AtMost(MAX_TENSORS)] = ()


class PartRecord(_Value):
    """One line of the rubric. `points` is null if it was not measured. `how` shows where the points come from, or why
    there are none. `kind` is the rubric's word, '' in older records unless a person fills the part in."""

    part: Name
    kind: Name = ""
    points: Number | None
    max: Number
    how: Sentence

    @model_validator(mode="before")
    @classmethod
    def _without_a_kind(cls, content: Any) -> Any:
        """Older records say only in `how` which parts a person fills in."""
        older = isinstance(content, dict) and not content.get("kind")
        return content | {"kind": "manual"} if older and str(content.get("how")).startswith(MANUAL) else content

    @property
    def is_manual(self) -> bool:
        """Whether a person fills in this part of the rubric."""
        return self.kind == "manual"


class KernelRecord(_Value):
    """One kernel of a profiled run. `metrics` has min, max and mean over the profiled launches, by metric name."""

    name: Name
    launches: Count
    profiled: Count
    gpu_ms: float
    share: float
    theoretical: float | None = None
    limiter: Sentence = ""
    metrics: Annotated[dict[Name, tuple[float, float, float]], AtMost(200)] = Field(default_factory=dict)


class ProfileRecord(_Value):
    """The profile behind the occupancy score. `counted` says which kernels counted, with which weight, and which were
    left out."""

    test: Name
    achieved: float | None
    reason: Sentence = ""
    counted: Sentences = ()
    kernels: Annotated[tuple[KernelRecord, ...], FailFast(), AtMost(MAX_KERNELS)] = ()
    flag: Sentence = ""
    """The reason why the profiler's value was refused; `achieved` is then the outside clock's value."""


class Scores(_Value):
    """Points by part name. `total` is null for practice and while any automatic part is not measured."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        json_schema_extra={"maxProperties": MAX_PARTS, "propertyNames": {"maxLength": MAX_NAME}},
    )
    __pydantic_extra__: dict[str, Number | None] = Field(init=False)
    total: Number | None
    max: Number

    @model_validator(mode="after")
    def _few(self) -> Self:
        if len(self.__pydantic_extra__) > MAX_PARTS or any(len(name) > MAX_NAME for name in self.__pydantic_extra__):
            raise ValueError(f"expected at most {MAX_PARTS} parts with names of at most {MAX_NAME} characters")
        return self


class MachineRecord(_Value):
    """The machine that graded the submission. `gpu_prepared` says whether the GPU was idle before the submission's
    first run."""

    host: Name
    cpu: Name
    confinement: Name
    gpu_prepared: Name = ""


class RecheckedTest(_Value):
    """One test on the second draw. `gpu_ms` is its shortest GPU time there. It is compared with `graded_ms`, the
    longest of the graded and timed runs. Both are null if times were not compared."""

    name: Name
    verdict: Verdict
    reason: Sentence = ""
    gpu_ms: float | None = None
    graded_ms: float | None = None
    flags: Sentences = ()


class RecheckRecord(_Value):
    """Tests that were run again on a second draw before a submission gets its place on the leaderboard. `draw`
    identifies the values, which can be made again with the course's secret. `reason` says why the recheck failed."""

    created: Time
    draw: Name
    device: Name
    passed: bool
    reason: Sentence = ""
    tests: Annotated[tuple[RecheckedTest, ...], Field(max_length=MAX_TESTS), FailFast()]


class CloserLookRecord(_Value):
    """One test that was run again with the emulator's checks. `cause` is the sentence on what is wrong, '' if nothing
    was found. `problem` says what was not looked at, and why. `seconds` is the time that the look added after the
    tests."""

    test: Name
    cause: Sentence = ""
    problem: Sentence = ""
    seconds: float
    findings: Findings = ()


class RescoredRecord(_Value):
    """A record whose points were computed again from its measurements, under rules that differ only in points: when, by
    which grader, and the tests that ran for it because the new rules need more measurements."""

    created: Time
    grader: GraderRecord
    ran: Names = ()


class Record(_Value):
    """One graded submission. `practice` is true if it ran on other testcases than the graded ones. `measured_sha256`
    is the SHA-256 of the rules without those that only decide points."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["grader-record-2"] = Field(default=SCHEMA, alias="schema")
    created: Time
    grader: GraderRecord
    assignment: Name
    assignment_sha256: Digest
    measured_sha256: Digest = ""
    submission: SubmissionRecord
    engine: EngineRecord
    machine: MachineRecord
    build: BuildRecord
    tests: Annotated[tuple[TestRecord, ...], Field(max_length=MAX_TESTS), FailFast()]
    occupancy: float | None
    scores: Scores
    parts: Annotated[tuple[PartRecord, ...], Field(max_length=MAX_PARTS), FailFast()]
    practice: bool
    not_measured: Sentences
    notes: Sentences
    flags: Sentences = ()
    hidden_inputs: Sentence = ""
    profiles: Annotated[tuple[ProfileRecord, ...], Field(max_length=MAX_TESTS), FailFast()] = ()
    timings: Annotated[dict[Name, Annotated[float, Field(ge=0, le=1e9)]], AtMost(100)] = Field(default_factory=dict)
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

    @property
    def first_fault(self) -> str:
        """The reason of the first test without a verdict through a fault of the grader or the machine, if any."""
        return next((test.reason for test in self.tests if test.fault in (Fault.GRADER, Fault.MACHINE)), "")


_RECORDS: TypeAdapter[tuple[Record, ...]] = TypeAdapter(tuple[Record, ...])


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
    """Read a file that holds one record or a list of records. Raises UsageError if it holds neither.

    The file may come from anybody, and 36 MB of keys that no record has take pydantic 16 s and 3.5 GB: so it is read in
    the room, and what comes back is written by ourselves."""
    try:
        with path.open("rb") as file:
            return _RECORDS.validate_json(_rewritten(file))
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    except Exceeded as exceeded:
        raise UsageError(f"{shown(path)} is not a record of this grader: to read it {exceeded}.") from exceeded
    except Unreadable as refused:
        raise UsageError(f"{shown(path)} is not a record of this grader: {refused}.") from refused


@confined(cpu_s=60, memory_bytes=4 << 30, answer_bytes=2 * MAX_FILE_BYTES)
def _rewritten(file: IO[bytes]) -> Annotated[str, Field(max_length=MAX_FILE_BYTES)]:
    """The JSON of a list of the records in the file."""
    content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise Unreadable(f"it has more than {MAX_FILE_BYTES:,} bytes")
    try:
        several = content.lstrip()[:1] == b"["
        records = _RECORDS.validate_json(content) if several else (Record.model_validate_json(content),)
    except ValidationError as error:
        raise Unreadable(problem_in(error)) from None
    return _RECORDS.dump_json(records, by_alias=True).decode()


def problem_in(error: ValidationError) -> str:
    """The first of the problems, as a phrase: "at tests.0.name, Field required"."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    return f"at {'.'.join(map(str, first['loc'])) or 'the top'}, {first['msg']}"


def record_in(text: str) -> Record:
    """The record in a store's row, in the grader's own process: its size is limited, and pydantic reads 16 MB in less
    than a second or gives up at the first key that is not a record's. Raises ValueError, with a phrase."""
    if len(text) > MAX_RECORD_BYTES:
        raise ValueError(f"it has more than {MAX_RECORD_BYTES:,} characters")
    try:
        return Record.model_validate_json(text)
    except ValidationError as error:
        raise ValueError(problem_in(error)) from error


def read_record(path: Path) -> Record:
    """Read a file that holds one record. Raises UsageError if it holds something else."""
    records = read_records(path)
    if len(records) != 1:
        raise UsageError(f"{shown(path)} holds {len(records)} records: give a file that holds one.")
    return records[0]
