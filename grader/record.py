"""The result record: everything a report is drawn from, and its JSON form.

The keys are a promise to other tools (docs/record.md lists them). What was not measured is null, and `not_measured`
says why.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from grader.errors import MachineFault, UsageError
from grader.paths import shown
from grader.verdict import Fault, Verdict

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
    """The sequential time that a speedup was computed from. `description` says what was sampled and scaled."""

    seconds: float
    description: str
    source_sha256: str
    cpu: str


class TestRecord(_Value):
    """One testcase. `reason` is the sentence a student reads; times that were not measured are null."""

    __test__ = False  # not a test class for pytest
    name: str
    shape: tuple[int | float, ...]
    verdict: Verdict
    fault: Fault | None
    reason: str
    max_error: float | None = None
    wrong_elements: int | None = None
    wall_s: float | None = None
    limit_s: float | None = None
    gpu_ms: float | None = None
    copy_ms: float | None = None
    kernels: int | None = None
    speedup: float | None = None
    baseline: BaselineRecord | None = None
    input_digest: str | None = None
    seed: str | None = None
    exit: str | None = None
    output: str = ""
    warnings: tuple[str, ...] = ()


class PartRecord(_Value):
    """One line of the rubric. `points` is null when it was not measured, and `how` says from what, or why not."""

    part: str
    points: float | None
    max: float
    how: str


class Scores(_Value):
    """Points by part name; `total` is null while any automatic part is not measured or the run was practice."""

    model_config = ConfigDict(frozen=True, extra="allow")
    total: float | None
    max: float


class MachineRecord(_Value):
    """The machine that graded."""

    host: str
    cpu: str
    confinement: str


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

    @property
    def infrastructure_failed(self) -> bool:
        """Whether any test is unjudged through a fault of the grader or the machine."""
        return any(test.fault in (Fault.GRADER, Fault.MACHINE) for test in self.tests)


def write_records(records: Sequence[Record], path: Path) -> None:
    """One record as an object, several as a list; written whole or not at all. Raises MachineFault."""
    adapter: TypeAdapter[object] = TypeAdapter(Record if len(records) == 1 else list[Record])
    content = adapter.dump_json(records[0] if len(records) == 1 else list(records), indent=2, by_alias=True)
    try:
        with tempfile.NamedTemporaryFile(dir=path.resolve().parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                file.write(content + b"\n")
                file.flush()
                os.fchmod(file.fileno(), 0o644)
                Path(file.name).replace(path)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise MachineFault(
            f"The result could not be written to {shown(path)}: {error.strerror}; choose another place with --json."
        ) from error


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
