"""Generates the files of testcases, atomically.

All three files are written under temporary names; the JSON is renamed last, and files without a matching JSON count as
missing. So an interrupted run leaves no partial case.
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
from pathlib import Path
from typing import Protocol

from grader.base.errors import MachineFault
from grader.base.paths import shown
from grader.base.workers import cores, run_tasks
from grader.course.catalogue.piece import Piece, make, pieces, write_at
from grader.course.catalogue.testcase_files import Progress, TestcaseFiles, provenance, state
from grader.course.seeds import Seed, draw_unit
from grader.course.testcase import Case, Suite

_IN_PROCESS_FLOPS = 4e9
"""Smaller cases are made in this process: starting workers would take longer."""

NUMPY = "numpy float64"
"""What a sidecar calls the oracle of the operator itself."""


class QuickOracle(Protocol):
    """Computes expected outputs faster than numpy; `verify` checks it against numpy."""

    @property
    def name(self) -> str:
        """What the sidecar says made the expected output."""

    def can(self, case: Case) -> bool:
        """Whether it computes this case."""

    def compute(self, case: Case, source: Path, target: Path, done: Callable[[int], None]) -> None:
        """Read the finished input file `source`, write the expected output into `target`, a file of its full size,
        and report output bytes as they are done."""


def generate(
    case: Case,
    files: TestcaseFiles,
    seed: Seed,
    progress: Progress = lambda done, total: None,
    processes: int | None = None,
    oracle: QuickOracle | None = None,
) -> None:
    """Makes the input, the expected output and the sidecar of a case, replacing what is there.

    Raises MachineFault where the disk is full or cannot be written; nothing half-made is left then, nor after
    Ctrl-C. `processes`: None for one per core, or none but this one when the case is small. Waits while another
    grader is making files in the same folder. `oracle` computes the expected output where it can.
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
    """See `generate`; needs the folder's lock."""
    final = files.of(case)
    temporary = tuple(path.with_name(f".{path.name}.{os.getpid()}.part") for path in final)
    source, target, sidecar = temporary
    try:
        _remove_leftovers(final)
        _allocate(source, case.input_bytes, case.operator.encode_header(case.shape))
        _allocate(target, case.output_bytes, b"")
        made_by = _fill(case, seed, source, target, progress, processes, oracle)
        _write_sidecar(case, seed, made_by, source, target, sidecar)
        files.sidecar(case).unlink(missing_ok=True)
        for made, path in zip(temporary, final, strict=True):
            made.rename(path)
    except OSError as error:
        raise _machine_fault(error, files.input(case), case.input_bytes + case.output_bytes) from error
    finally:
        for path in temporary:
            with contextlib.suppress(OSError):
                path.unlink()


def _fill(
    case: Case,
    seed: Seed,
    source: Path,
    target: Path,
    progress: Progress,
    processes: int | None,
    oracle: QuickOracle | None,
) -> str:
    """Writes inputs into `source` and expected outputs into `target`; the name of the oracle that made them."""
    total = case.input_bytes + case.output_bytes
    spent = 0

    def done(amount: int) -> None:
        nonlocal spent
        spent += amount
        progress(total * spent // case.output_bytes, total)

    progress(0, total)
    if oracle is not None and oracle.can(case):
        _draw(case, seed, source)
        oracle.compute(case, source, target, done)
        return oracle.name
    if processes is None:
        processes = 0 if case.flops < _IN_PROCESS_FLOPS else cores()
    run_tasks(make, _work(case, seed, source, target), processes, done)
    return NUMPY


def _work(case: Case, seed: Seed, source: Path, target: Path) -> list[Piece]:
    """The pieces of a case, for `make`."""
    return [
        Piece(case.operator.name, case.shape, case.distribution, seed, case.identity, first, end, rows, source, target)
        for first, end, rows in pieces(case.operator, case.shape)
    ]


def _draw(case: Case, seed: Seed, path: Path) -> None:
    """Writes the inputs alone: threads are enough, numpy lets others run while it draws and converts."""
    operator, shape = case.operator, case.shape
    count = operator.unit_input_bytes(shape) // 4
    target = os.open(path, os.O_WRONLY)

    def draw(unit: int) -> None:
        values = draw_unit(seed, case.identity, unit, count, case.distribution)
        write_at(target, values, operator.input_offset(shape, unit))

    try:
        with ThreadPoolExecutor(cores()) as pool:
            for _ in pool.map(draw, range(operator.units(shape))):
                pass
    finally:
        os.close(target)


def _write_sidecar(case: Case, seed: Seed, made_by: str, source: Path, target: Path, sidecar: Path) -> None:
    """Writes the origin and SHA-256 of both files; afterwards all three are on the disk."""
    with ThreadPoolExecutor(2) as pool:
        input_sha256, expected_sha256 = pool.map(_digest_and_sync, (source, target))
    content = {
        **provenance(case, seed),
        "oracle": made_by,
        "input": {"bytes": case.input_bytes, "sha256": input_sha256},
        "expected": {"bytes": case.output_bytes, "sha256": expected_sha256},
    }
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
    """Generates files that are missing or outdated (`force`: all); returns their cases. `progress` returns the callback
    for a case's bytes."""
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
    """Makes the folder and locks it against other graders; the kernel ends the lock with the process."""
    try:
        files.folder.mkdir(parents=True, exist_ok=True)
        folder = os.open(files.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _machine_fault(error, files.input(case), case.input_bytes + case.output_bytes) from error
    try:
        with contextlib.suppress(OSError):  # a network file system may not lock folders: then as without
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _remove_leftovers(final: Sequence[Path]) -> None:
    """Removes partial files of a killed grader. Needs the folder's lock."""
    for path in final:
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink(missing_ok=True)


def _allocate(path: Path, size: int, start: bytes) -> None:
    """Creates a file of full size with reserved blocks, so that a full disk shows now and not in an hour."""
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
