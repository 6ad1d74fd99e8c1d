"""Generates the files of testcases, atomically.

All three files are written under temporary names. The JSON file is renamed last, and files without a matching JSON file
count as missing, so an interrupted run leaves no partial testcase.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from grader.base.errors import MachineFault
from grader.base.paths import shown
from grader.base.workers import cores, run_tasks
from grader.course.catalogue.piece import Made, Piece, make, pieces
from grader.course.catalogue.testcase_files import Progress, TestcaseFiles, provenance, state
from grader.course.seeds import Seed, draw_tensors
from grader.course.testcase import Case, Suite
from grader.operators.tolerance import ErrorSums

_IN_PROCESS_FLOPS = 4e9
"""Smaller testcases are made in this process, since starting workers would take longer."""

NUMPY = "numpy float64"
"""The name of the operator's own oracle in a sidecar."""


class QuickOracle(Protocol):
    """Computes expected outputs faster than numpy; `verify` compares them with numpy's."""

    @property
    def name(self) -> str:
        """The name of this oracle in a sidecar."""

    def can(self, case: Case) -> bool:
        """Whether this oracle can compute the testcase."""

    def compute(self, case: Case, source: Path, target: Path, done: Callable[[Made], None]) -> None:
        """Read the finished input file `source` and write the expected output into `target`, which already has its full
        size. Report finished bytes of output, and the errors of the plain implementation, to `done`."""


def generate(
    case: Case,
    files: TestcaseFiles,
    seed: Seed,
    progress: Progress = lambda done, total: None,
    processes: int | None = None,
    oracle: QuickOracle | None = None,
) -> None:
    """Make the input, the expected output and the sidecar of a testcase, and replace existing files.

    Raises MachineFault if the disk is full or cannot be written. Neither a fault nor Ctrl-C leaves partial files.
    `processes`: None means one per core, or only this process for a small testcase. Waits while another grader makes
    files in the same folder. `oracle` computes the expected output if it can, else numpy does.
    """
    with _folder_to_ourselves(case, files):
        _generate(case, files, seed, progress, processes, oracle)


def _generate(
    case: Case,
    files: TestcaseFiles,
    seed: Seed,
    progress: Progress,
    processes: int | None = None,
    oracle: QuickOracle | None = None,
) -> None:
    """Do what `generate` describes; the caller holds the folder's lock."""
    final = files.of(case)
    temporary = tuple(path.with_name(f".{path.name}.{os.getpid()}.part") for path in final)
    source, target, sidecar = temporary
    try:
        _remove_leftovers(final)
        _allocate(source, case.input_bytes, case.operator.encode_header(case.shape))
        _allocate(target, case.expected_bytes, b"")
        filled = _fill(case, seed, source, target, progress, processes, oracle)
        _write_sidecar(case, seed, filled, source, target, sidecar)
        files.sidecar(case).unlink(missing_ok=True)
        for made, path in zip(temporary, final, strict=True):
            made.rename(path)
    except OSError as error:
        raise _machine_fault(error, files.input(case), case.input_bytes + case.expected_bytes) from error
    finally:
        for path in temporary:
            with contextlib.suppress(OSError):
                path.unlink()


@dataclass(frozen=True)
class _Filled:
    """The name of the oracle, and for each output tensor the errors of the plain implementation, if there is one."""

    oracle: str
    plain: tuple[ErrorSums, ...]


def _fill(
    case: Case,
    seed: Seed,
    source: Path,
    target: Path,
    progress: Progress,
    processes: int | None,
    oracle: QuickOracle | None,
) -> _Filled:
    """Write inputs into `source` and expected outputs into `target`."""
    total = case.input_bytes + case.expected_bytes
    spent = 0
    plain: tuple[ErrorSums, ...] = ()

    def done(made: Made) -> None:
        nonlocal spent, plain
        spent += made.amount
        plain = tuple(map(ErrorSums.__add__, plain, made.plain)) if plain else made.plain
        progress(total * spent // case.output_bytes, total)

    progress(0, total)
    if oracle is not None and oracle.can(case):
        _draw(case, seed, source)
        oracle.compute(case, source, target, done)
        return _Filled(oracle.name, plain)
    if processes is None:
        processes = 0 if case.flops < _IN_PROCESS_FLOPS else cores()
    run_tasks(make, _work(case, seed, source, target), processes, done)
    return _Filled(NUMPY, plain)


def _work(case: Case, seed: Seed, source: Path, target: Path) -> list[Piece]:
    """The pieces of a testcase, for `make`."""
    return [
        Piece(case.operator.name, case.shape, case.distribution, seed, case.identity, first, end, rows, source, target)
        for first, end, rows in pieces(case.operator, case.shape)
    ]


def _draw(case: Case, seed: Seed, path: Path) -> None:
    """Write only the inputs. Threads are enough, since numpy releases Python's lock while it draws and converts."""
    operator, shape = case.operator, case.shape
    target = os.open(path, os.O_WRONLY)

    def draw(unit: int) -> None:
        tensors = draw_tensors(operator, shape, case.distribution, seed, case.identity, unit)
        operator.write_unit(target, shape, unit, tensors)

    try:
        with ThreadPoolExecutor(cores()) as pool:
            for _ in pool.map(draw, range(operator.units(shape))):
                pass
    finally:
        os.close(target)


def _write_sidecar(case: Case, seed: Seed, filled: _Filled, source: Path, target: Path, sidecar: Path) -> None:
    """Write the sidecar, with the origin and the SHA-256 of the other two files, and flush all three files to the
    disk."""
    with ThreadPoolExecutor(2) as pool:
        input_sha256, expected_sha256 = pool.map(_digest_and_sync, (source, target))
    content = {
        **provenance(case, seed),
        "oracle": filled.oracle,
        "input": {"bytes": case.input_bytes, "sha256": input_sha256},
        "expected": {"bytes": case.expected_bytes, "sha256": expected_sha256},
    }
    if filled.plain:
        names = [tensor.name for tensor in case.operator.outputs(case.shape)]
        content["plain"] = {name: asdict(sums.errors) for name, sums in zip(names, filled.plain, strict=True)}
    sidecar.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    _digest_and_sync(sidecar)


def ensure(
    cases: Sequence[Case],
    suite: Suite,
    files: TestcaseFiles,
    progress: Callable[[Case], Progress] = lambda case: lambda done, total: None,
    *,
    oracle: QuickOracle | None = None,
    force: bool = False,
) -> tuple[Case, ...]:
    """Generate files that are missing or outdated (`force`: all files) and return their testcases. `progress` returns
    the callback for the progress of one testcase."""
    made = []
    for case in cases:
        seed = suite.seed(case)
        if not force and state(case, files, seed) == "ready":
            continue
        with _folder_to_ourselves(case, files):
            if force or state(case, files, seed) != "ready":  # another grader may have made it while we waited
                _generate(case, files, seed, progress(case), oracle=oracle)
                made.append(case)
    return tuple(made)


@contextlib.contextmanager
def _folder_to_ourselves(case: Case, files: TestcaseFiles) -> Iterator[None]:
    """Create the folder and lock it against other graders. The operating system drops the lock when the process
    ends."""
    try:
        files.folder.mkdir(parents=True, exist_ok=True)
        folder = os.open(files.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _machine_fault(error, files.input(case), case.input_bytes + case.expected_bytes) from error
    try:
        with contextlib.suppress(OSError):  # a network file system may lack this lock; we then continue without it
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _remove_leftovers(final: Sequence[Path]) -> None:
    """Remove partial files of a killed grader. Needs the folder's lock."""
    for path in final:
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink(missing_ok=True)


def _allocate(path: Path, size: int, start: bytes) -> None:
    """Create a file of full size with reserved blocks, so that a full disk is noticed now and not in an hour."""
    with path.open("wb") as file:
        if size:
            try:
                os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                    raise
                file.truncate(size)
        file.write(start)


def _digest_and_sync(path: Path) -> str:
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        return hashlib.file_digest(file, "sha256").hexdigest()


def _machine_fault(error: OSError, path: Path, needed: int) -> MachineFault:
    try:
        place = next(folder for folder in path.parents if folder.exists())
        free = f"{shutil.disk_usage(place).free:,} bytes are free"
    except OSError:
        free = "an unknown amount is free"
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"{error.strerror}"
    return MachineFault(
        f"{shown(path)}: the testcase cannot be written ({what}): it takes {needed:,} bytes with its expected "
        f"output, {free} in {shown(path.parent)}; free some space or choose another folder. No partial file was left."
    )
