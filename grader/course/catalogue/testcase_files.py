"""The files of a testcase on disk: their names, their origin, and whether they still match it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grader.base.errors import GraderFault, UsageError
from grader.base.paths import shown
from grader.course.assignment import ToleranceRule
from grader.course.seeds import GENERATOR, Seed
from grader.course.testcase import Case, Suite
from grader.operators.tolerance import PlainErrors, TimesPlain, Tolerance

SIDECAR_VERSION = 1

Progress = Callable[[int, int], None]
"""A callback with the finished and the total bytes."""

_CHUNK_BYTES = 1 << 22


@dataclass(frozen=True)
class TestcaseFiles:
    """Knows the names of a suite's generated files, which are all in one folder."""

    __test__ = False  # not a test class for pytest
    folder: Path

    @staticmethod
    def beside(suite: Suite) -> TestcaseFiles:
        """The usual place: a folder named after the assignment, next to the YAML."""
        return TestcaseFiles(suite.path.parent / suite.assignment)

    def of(self, case: Case) -> tuple[Path, Path, Path]:
        """The paths of the input, the expected output and the sidecar."""
        return self.input(case), self.expected(case), self.sidecar(case)

    def input(self, case: Case) -> Path:
        return self.folder / f"{case.name}.in"

    def expected(self, case: Case) -> Path:
        return self.folder / f"{case.name}.out"

    def sidecar(self, case: Case) -> Path:
        return self.folder / f"{case.name}.json"


def provenance(case: Case, seed: Seed) -> dict[str, Any]:
    """Everything that determines a testcase's files, as the sidecar stores it."""
    return {
        "version": SIDECAR_VERSION,
        "assignment": case.assignment,
        "name": case.name,
        "operator": case.operator.name,
        "shape": list(case.shape),
        "distribution": str(case.distribution),
        "generator": GENERATOR,
        "seed": {"kind": seed.kind, "id": seed.id},
    }


def read_sidecar(case: Case, files: TestcaseFiles) -> dict[str, Any] | None:
    """The sidecar of a testcase; None if it is missing or unreadable."""
    try:
        content = json.loads(files.sidecar(case).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def limits(case: Case, files: TestcaseFiles, tolerance: ToleranceRule) -> Tolerance:
    """The limits on the errors of each output tensor of a testcase. Raises GraderFault if they depend on the errors of
    a plain implementation and the sidecar lacks those errors."""
    plain = (read_sidecar(case, files) or {}).get("plain", {}) if isinstance(tolerance, TimesPlain) else {}
    try:
        return case.operator.tolerances(
            case.shape, tolerance, {name: PlainErrors(**errors) for name, errors in plain.items()}
        )
    except (UsageError, TypeError, KeyError) as error:
        raise GraderFault(
            f"{shown(files.sidecar(case))} does not say which errors pass: {error}; generate {case.name} again."
        ) from error


def state(case: Case, files: TestcaseFiles, seed: Seed | None = None) -> str:
    """The state of a testcase's files: "ready", "missing", or what differs in them ("other seed", "other size", …).

    This function looks only at the sidecar, the sizes and the input's header; `verify` reads everything. Without
    `seed`, it accepts any seed.
    """
    sidecar = read_sidecar(case, files)
    here = [path.exists() for path in (files.input(case), files.expected(case))]
    if sidecar is None:
        return "unfinished" if any(here) else "missing"
    if not all(here):
        return "missing"
    for path, size in ((files.input(case), case.input_bytes), (files.expected(case), case.expected_bytes)):
        if path.stat().st_size != size:
            return "other size"
    with files.input(case).open("rb") as file:
        header = case.operator.encode_header(case.shape)
        if file.read(len(header)) != header:
            return "other header"
    wanted = provenance(case, seed or Seed("public", b""))
    for key, value in wanted.items():
        if key == "seed" and seed is None:
            continue
        if sidecar.get(key) != value:
            return f"other {key}"
    return "ready"


_unchanged = set[tuple[object, ...]]()
"""The files that this process has found unchanged: path, inode, size, time of the last write, SHA-256."""


def changed_files(
    case: Case, files: TestcaseFiles, progress: Callable[[int], None] = lambda read: None, *, trust: bool = False
) -> tuple[str, ...]:
    """A sentence for each file whose SHA-256 has changed since it was generated. `progress` gets the bytes read so
    far. With `trust`, a file is not read again that this process has found unchanged, if nobody wrote to it since."""
    sidecar = read_sidecar(case, files) or {}
    problems, read = [], 0
    for key, path in (("input", files.input(case)), ("expected", files.expected(case))):
        recorded, before = sidecar.get(key, {}).get("sha256"), path.stat()
        if trust and (path, before.st_ino, before.st_size, before.st_mtime_ns, recorded) in _unchanged:
            continue
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while data := file.read(_CHUNK_BYTES):
                digest.update(data)
                read += len(data)
                progress(read)
        if digest.hexdigest() == recorded:
            _unchanged.add((path, before.st_ino, before.st_size, before.st_mtime_ns, recorded))
        else:
            problems.append(
                f"{shown(path)} was changed: its SHA-256 is {digest.hexdigest()[:12]}…, recorded was "
                f"{str(recorded)[:12]}…; `grader testcases generate {case.name}` makes it again."
            )
    return tuple(problems)
