"""The result record, the source of every report, and its JSON form.

The keys are a promise to other tools (docs/record.md lists them). What was not measured is null, and `not_measured`
says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from grader.base.errors import MachineFault, UsageError
from grader.base.paths import replacing, shown
from grader.base.verdict import Fault, Verdict

SCHEMA: Literal["grader-record-1"] = "grader-record-1"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SubmissionRecord(_Value):
    """Which files were graded. `sha256` covers names and contents."""

    id: str
    path: str
    sha256: str
    files: tuple[str, ...]


class EngineRecord(_Value):
    """Where it ran. `facts`: driver, compute capability, compiler, as the engine has them."""

    name: str
    device: str
    facts: dict[str, str]


class BuildRecord(_Value):
    """How it was compiled. `seconds` is what compiling took, also when the build was `cached`."""

    ok: bool
    log: str
    seconds: float
    flags: tuple[str, ...]
    flags_from: str
    cached: bool


class BaselineRecord(_Value):
    """The sequential time that a speedup was computed from. `description` says how it was sampled and scaled."""

    seconds: float
    description: str
    source_sha256: str
    cpu: str


class TimedRunRecord(_Value):
    """One timed run. `use` says what became of it: `counted`, or why not (`warm-up`, `throttled`). Clocks in MHz."""

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
    """What a clock outside the program saw of all runs of a timing: how long the GPU was busy, how much of it the
    traces explain, and how much an honest program may need. `source`: `GPM` or `utilisation`. `occupancy`: the share
    of active warps on busy SMs, 0..1."""

    source: str
    interval_s: float
    busy_ms: float
    traced_ms: float
    allowed_ms: float
    occupancy: float | None = None


class TimingRecord(_Value):
    """How a GPU time was measured: `gpu_ms` of the test is the median of the counted runs, `low_ms` to `high_ms` its
    confidence interval. `stopped`: `stable`, `budget` or `count`, the branch of the stopping rule."""

    runs: tuple[TimedRunRecord, ...]
    median_ms: float
    low_ms: float | None = None
    high_ms: float | None = None
    confidence: float | None = None
    stopped: str
    rule: str
    notes: tuple[str, ...] = ()
    outside: OutsideRecord | None = None
    """None where the GPU has no counters that can be read from outside."""


class ReferenceRecord(_Value):
    """The reference solution that a test's time was compared with: which file, the SHA-256 of what was compiled, and
    its own timing on the same GPU in the same session, on fresh inputs of the same test."""

    name: str
    sha256: str
    timing: TimingRecord


class FloorTerm(_Value):
    """One physical limit: the least time it sets and where its constants come from."""

    name: str
    ms: float
    source: str


class FloorRecord(_Value):
    """The least time the GPU could need. `share` is floor / measured, `tflops` what was achieved."""

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


class TestRecord(_Value):
    """One testcase. `reason` is the sentence a student reads; `cause` is the part of it that says why, which tests that
    fail alike share, '' where nothing explains the failure. Times that were not measured are null."""

    __test__ = False  # not a test class for pytest
    name: str
    shape: tuple[int | float, ...]
    verdict: Verdict
    fault: Fault | None
    reason: str
    cause: str = ""
    max_error: float | None = None
    wrong_elements: int | None = None
    wall_s: float | None = None
    limit_s: float | None = None
    cpu_s: float | None = None
    """Host processor time of all processes of the graded run."""
    gpu_ms: float | None = None
    copy_ms: float | None = None
    phases_ms: dict[str, float | None] = Field(default_factory=dict)
    """GPU time of the graded run by the assignment's phases; null for a phase that no kernel's name fits."""
    kernels: int | None = None
    speedup: float | None = None
    baseline: BaselineRecord | None = None
    input_digest: str | None = None
    timing: TimingRecord | None = None
    timing_refused: str = ""
    """Why the measured time is rejected; a rejected time earns no points and is not ranked."""
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
    """One line of the rubric. `points` is null when it was not measured, and `how` says from what, or why not."""

    part: str
    points: float | None
    max: float
    how: str


class KernelRecord(_Value):
    """One kernel of a profiled run. `metrics`: min, max and mean over the profiled launches, by metric name."""

    name: str
    launches: int
    profiled: int
    gpu_ms: float
    share: float
    theoretical: float | None = None
    limiter: str = ""
    metrics: dict[str, tuple[float, float, float]] = Field(default_factory=dict)


class ProfileRecord(_Value):
    """The profile that the occupancy score came from. `counted` says which kernel counted with which weight and
    what was left out."""

    test: str
    achieved: float | None
    reason: str = ""
    counted: tuple[str, ...] = ()
    kernels: tuple[KernelRecord, ...] = ()
    flag: str = ""
    """Why the profiler's value was rejected; `achieved` is then the value seen from outside."""


class Scores(_Value):
    """Points by part name; `total` is null while any automatic part is not measured or the run was practice."""

    model_config = ConfigDict(frozen=True, extra="allow")
    total: float | None
    max: float


class MachineRecord(_Value):
    """The machine that graded. `gpu_prepared`: whether the GPU was idle before the submission's first run."""

    host: str
    cpu: str
    confinement: str
    gpu_prepared: str = ""


class RecheckedTest(_Value):
    """One test on the second draw. `gpu_ms` is its least GPU time there, `graded_ms` the longest of the graded and
    timed runs that it is compared with; null where times were not compared."""

    name: str
    verdict: Verdict
    reason: str = ""
    gpu_ms: float | None = None
    graded_ms: float | None = None
    flags: tuple[str, ...] = ()


class RecheckRecord(_Value):
    """The results run again on a second draw of values, before a leaderboard place is given. `draw` names the values:
    with the course's secret they can be made again. `reason` is why it did not pass."""

    created: str
    draw: str
    device: str
    passed: bool
    reason: str = ""
    tests: tuple[RecheckedTest, ...]


class CloserLookRecord(_Value):
    """One test run again with the emulator's checks: `cause` is the sentence on what is wrong, '' where nothing was
    found; `problem` why the look failed. `seconds` is its duration after the tests."""

    test: str
    cause: str = ""
    problem: str = ""
    seconds: float


class Record(_Value):
    """One graded submission. `practice` is true when it ran on part of the graded testcases."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    schema_: Literal["grader-record-1"] = Field(default=SCHEMA, alias="schema")
    created: str
    grader: str
    assignment: str
    assignment_sha256: str
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
    """Seconds of this grading by stage, and their `total`."""
    recheck: RecheckRecord | None = None
    closer_look: CloserLookRecord | None = None

    @property
    def infrastructure_failed(self) -> bool:
        """Whether a fault of the grader or the machine left any test without a verdict."""
        return any(test.fault in (Fault.GRADER, Fault.MACHINE) for test in self.tests)


def write_records(records: Sequence[Record], path: Path) -> None:
    """Writes one record as an object, several as a list, atomically. Raises MachineFault."""
    adapter: TypeAdapter[object] = TypeAdapter(Record if len(records) == 1 else list[Record])
    content = adapter.dump_json(records[0] if len(records) == 1 else list(records), indent=2, by_alias=True)
    try:
        with replacing(path) as file:
            file.write(content + b"\n")
    except OSError as error:
        raise MachineFault(
            f"The result could not be written to {shown(path)}: {error.strerror}; choose another place with --json."
        ) from error


def read_records(path: Path) -> tuple[Record, ...]:
    """Read a file of one record or of a list of them. Raises UsageError when it is neither."""
    adapter: TypeAdapter[list[Record]] = TypeAdapter(list[Record])
    try:
        if path.read_bytes().lstrip()[:1] == b"[":
            return tuple(adapter.validate_json(path.read_bytes()))
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise UsageError(f"{shown(path)} is not a list of records: at {where}, {first['msg']}.") from error
    return (read_record(path),)


def read_record(path: Path) -> Record:
    """Read one record back. Raises UsageError when it is not one."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{shown(path)} cannot be read: {error.strerror}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the top"
        raise UsageError(f"{shown(path)} is not a record of this grader: at {where}, {first['msg']}.") from error
