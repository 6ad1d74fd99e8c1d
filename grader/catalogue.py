"""The files of testcases: making them, knowing whether they are the right ones, checking them again.

A case has three files, named by TestcaseFiles alone: NAME.in, NAME.out (the float64 oracle's result, rounded
to float32: at most 2^-24 of the value away from it) and NAME.json, which says what they were made from and their
SHA-256. Input and output are made together, in pieces of some units or, where a unit is large, some rows of one;
each piece needs nothing but the seed, so pieces are spread over processes and written at their own offsets, and
memory stays at one piece per process. All three files are written under temporary names; the JSON is renamed
last, and without a JSON that fits, files count as missing. So an interrupted run leaves no half case.
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
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from grader.errors import MachineFault
from grader.operators import Location, Operator, Shape, load_operator
from grader.paths import shown
from grader.seeds import GENERATOR, Distribution, Seed, draw_unit
from grader.testcase import Case, Suite
from grader.workers import cores, run_tasks

Progress = Callable[[int, int], None]
"""Called with bytes done and bytes in all."""

SIDECAR_VERSION = 1

PIECE_FLOPS = 2e9
"""Work of one piece: long enough (some 50 ms) to hide the pipe, short enough to share out and to show progress."""

PIECE_BYTES = 8 << 20
"""Input of one piece, unless a single unit is larger."""

PIECE_ROWS = 512
"""Fewest rows in a piece that is part of a unit: drawing the unit again must stay cheap beside the oracle."""

IN_PROCESS_FLOPS = 4e9
"""Less than this is done in this process: starting workers would take longer."""

CHUNK_BYTES = 1 << 22


# ---- names ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TestcaseFiles:
    """Owns the names of a suite's generated files, all in one folder."""

    __test__ = False  # for pytest: not a test class
    folder: Path

    @staticmethod
    def beside(suite: Suite) -> TestcaseFiles:
        """The usual place: a folder named after the assignment, beside the YAML."""
        return TestcaseFiles(suite.path.parent / suite.assignment)

    def input(self, case: Case) -> Path:
        return self.folder / f"{case.name}.in"

    def expected(self, case: Case) -> Path:
        return self.folder / f"{case.name}.out"

    def sidecar(self, case: Case) -> Path:
        return self.folder / f"{case.name}.json"


# ---- pieces ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Piece:
    """Some units of a case, or some rows of one unit, with everything needed to make or recompute them."""

    operator: str
    shape: Shape
    distribution: Distribution
    seed: Seed
    identity: str
    first_unit: int
    end_unit: int
    rows: tuple[int, int] | None
    input: Path | None
    output: Path

    def amount(self) -> int:
        """Bytes of output, for progress: they are in proportion to the work."""
        operator = load_operator(self.operator)
        size = operator.unit_output_bytes(self.shape) * (self.end_unit - self.first_unit)
        if self.rows is None:
            return size
        return size * (self.rows[1] - self.rows[0]) // operator.outputs(self.shape)[0].rows


def pieces(operator: Operator, shape: Shape) -> Iterator[tuple[int, int, tuple[int, int] | None]]:
    """(first unit, end unit, rows or None): a division of the work."""
    units = operator.units(shape)
    unit_flops = max(operator.flops(shape) / units, 1.0)
    rows = operator.outputs(shape)[0].rows
    same_rows = all(tensor.rows == rows for tensor in operator.outputs(shape))
    if operator.independent_rows and same_rows and unit_flops >= 2 * PIECE_FLOPS and rows >= 2 * PIECE_ROWS:
        step = max(PIECE_ROWS, int(rows * PIECE_FLOPS / unit_flops))
        for unit in range(units):
            for first in range(0, rows, step):
                yield unit, unit + 1, (first, min(first + step, rows))
        return
    by_flops, by_bytes = PIECE_FLOPS / unit_flops, PIECE_BYTES / operator.unit_input_bytes(shape)
    step = max(1, int(min(by_flops, by_bytes)))
    for unit in range(0, units, step):
        yield unit, min(unit + step, units), None


def _make(piece: Piece) -> int:
    """Draws and writes a piece's inputs, computes and writes its expected outputs."""
    operator = load_operator(piece.operator)
    count = operator.unit_input_bytes(piece.shape) // 4
    rows = slice(None) if piece.rows is None else slice(*piece.rows)
    first_row = 0 if piece.rows is None else piece.rows[0]
    source = os.open(piece.input, os.O_WRONLY) if piece.input is not None and first_row == 0 else None
    target = os.open(piece.output, os.O_WRONLY)
    try:
        for unit in range(piece.first_unit, piece.end_unit):
            values = draw_unit(piece.seed, piece.identity, unit, count, piece.distribution)
            if source is not None:
                _write_at(source, values, operator.input_offset(piece.shape, unit))
            results = operator.oracle(piece.shape, operator.split_unit(piece.shape, values), rows)
            for number, result in enumerate(results):
                offset = operator.output_offset(piece.shape, number, unit, first_row)
                _write_at(target, np.ascontiguousarray(result, dtype="<f4"), offset)
    finally:
        os.close(target)
        if source is not None:
            os.close(source)
    return piece.amount()


def _write_at(descriptor: int, values: NDArray[np.float32], offset: int) -> None:
    data = values.data.cast("B")
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written


# ---- generate -------------------------------------------------------------------------------------------------


class QuickOracle(Protocol):
    """Something that computes expected outputs faster than numpy, which stays its judge (see `verify`)."""

    @property
    def name(self) -> str:
        """What the sidecar says made the expected output."""

    def can(self, case: Case) -> bool:
        """Whether it computes this case."""

    def compute(self, case: Case, source: Path, target: Path, done: Callable[[int], None]) -> None:
        """Read the finished input file `source`, write the expected output into `target`, a file of its full size,
        and report output bytes as they are done."""


NUMPY = "numpy float64"


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
    operator, shape = case.operator, case.shape
    total = case.input_bytes + case.output_bytes
    final = (files.input(case), files.expected(case), files.sidecar(case))
    temporary = tuple(path.with_name(f".{path.name}.{os.getpid()}.part") for path in final)
    if processes is None:
        processes = 0 if case.flops < IN_PROCESS_FLOPS else cores()
    spent = 0

    def done(amount: int) -> None:
        nonlocal spent
        spent += amount
        progress(total * spent // case.output_bytes, total)

    try:
        _remove_leftovers(final)
        _allocate(temporary[0], case.input_bytes, operator.encode_header(shape))
        _allocate(temporary[1], case.output_bytes, b"")
        progress(0, total)
        if oracle is not None and oracle.can(case):
            _draw(case, seed, temporary[0])
            oracle.compute(case, temporary[0], temporary[1], done)
            made_by = oracle.name
        else:
            run_tasks(_make, _work(case, seed, temporary[0], temporary[1]), processes, done)
            made_by = NUMPY
        with ThreadPoolExecutor(2) as pool:
            digests = list(pool.map(_digest_and_sync, temporary[:2]))
        sidecar = {
            **_provenance(case, seed),
            "oracle": made_by,
            "input": {"bytes": case.input_bytes, "sha256": digests[0]},
            "expected": {"bytes": case.output_bytes, "sha256": digests[1]},
        }
        temporary[2].write_text(json.dumps(sidecar, indent=2) + "\n", encoding="utf-8")
        _digest_and_sync(temporary[2])
        final[2].unlink(missing_ok=True)
        for made, path in zip(temporary, final, strict=True):
            made.rename(path)
    except OSError as error:
        raise _machine_fault(error, final[0], total) from error
    finally:
        for path in temporary:
            with contextlib.suppress(OSError):
                path.unlink()


def _work(case: Case, seed: Seed, source: Path, target: Path) -> list[Piece]:
    """The pieces of a case, for `_make`."""
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
        _write_at(target, values, operator.input_offset(shape, unit))

    try:
        with ThreadPoolExecutor(cores()) as pool:
            for _ in pool.map(draw, range(operator.units(shape))):
                pass
    finally:
        os.close(target)


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
    """Removes what a grader that was killed left of these files. Only with the folder to ourselves."""
    for path in final:
        for leftover in path.parent.glob(f".{path.name}.*.part"):
            leftover.unlink(missing_ok=True)


def _allocate(path: Path, size: int, start: bytes) -> None:
    """A file of its full size whose blocks are reserved, so that a full disk shows now and not in an hour."""
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
        free = "how much is free cannot be told"
    what = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else f"{error.strerror}"
    return MachineFault(
        f"{shown(path)}: the testcase cannot be written ({what}): it takes {needed:,} bytes with its expected "
        f"output, {free} in {shown(path.parent)}; free some space or choose another folder. Nothing half-made "
        "was left."
    )


def _provenance(case: Case, seed: Seed) -> dict[str, Any]:
    """What determines a case's files, as the sidecar keeps it."""
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


# ---- what is there --------------------------------------------------------------------------------------------


def read_sidecar(case: Case, files: TestcaseFiles) -> dict[str, Any] | None:
    """The sidecar of a case, or None where there is none that can be read."""
    try:
        content = json.loads(files.sidecar(case).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def state(case: Case, files: TestcaseFiles, seed: Seed | None = None) -> str:
    """ "ready", "missing", or why the files there are not this case's ("other seed", "other size", …).

    Looks at the sidecar, sizes and the input's header only; `verify` reads everything. Without `seed` any seed will do.
    """
    sidecar = read_sidecar(case, files)
    here = [path.exists() for path in (files.input(case), files.expected(case))]
    if sidecar is None:
        return "unfinished" if any(here) else "missing"
    if not all(here):
        return "missing"
    for path, size in ((files.input(case), case.input_bytes), (files.expected(case), case.output_bytes)):
        if path.stat().st_size != size:
            return "other size"
    with files.input(case).open("rb") as file:
        header = case.operator.encode_header(case.shape)
        if file.read(len(header)) != header:
            return "other header"
    wanted = _provenance(case, seed or Seed("public", b""))
    for key, value in wanted.items():
        if key == "seed" and seed is None:
            continue
        if sidecar.get(key) != value:
            return f"other {key}"
    return "ready"


def ensure(
    cases: Sequence[Case],
    suite: Suite,
    files: TestcaseFiles,
    progress: Callable[[Case], Progress] = lambda case: lambda done, total: None,
    *,
    oracle: QuickOracle | None = None,
    force: bool = False,
) -> tuple[Case, ...]:
    """Makes what is missing or was made from something else (`force`: all); gives back the cases that were made.
    `progress` gives what is told of a case's bytes."""
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


# ---- verify ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verification:
    """What re-reading a case's files found. No problems: all is well."""

    case: Case
    problems: tuple[str, ...]
    values_recomputed: int

    @property
    def ok(self) -> bool:
        return not self.problems


SAMPLED_UNITS = 8
SAMPLED_ROWS = 16


def changed_files(
    case: Case, files: TestcaseFiles, progress: Callable[[int], None] = lambda read: None
) -> tuple[str, ...]:
    """What is no longer what was generated, by SHA-256, in sentences. `progress` is told the bytes read so far."""
    sidecar = read_sidecar(case, files) or {}
    problems, read = [], 0
    for key, path in (("input", files.input(case)), ("expected", files.expected(case))):
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while data := file.read(CHUNK_BYTES):
                digest.update(data)
                read += len(data)
                progress(read)
        recorded = sidecar.get(key, {}).get("sha256")
        if digest.hexdigest() != recorded:
            problems.append(
                f"{shown(path)}: its SHA-256 is {digest.hexdigest()[:12]}…, the one recorded is "
                f"{str(recorded)[:12]}…; it was changed, generate {case.name} again with --force."
            )
    return tuple(problems)


def verify(
    case: Case,
    files: TestcaseFiles,
    seed: Seed | None = None,
    full: bool = False,
    progress: Progress = lambda done, total: None,
) -> Verification:
    """Reads a case's files again: sidecar, sizes, header, SHA-256, inputs against the seed where it is given, and
    the expected output against the oracle, on sampled rows or (`full`) all of them.
    """
    kind = state(case, files, seed)
    if kind != "ready":
        reason = {"missing": "is not there", "unfinished": "has no NAME.json that says what it is"}
        text = reason.get(kind, f"was made from something else ({kind})")
        return Verification(case, (f"{shown(files.input(case))} {text}; generate {case.name} again.",), 0)
    size = case.input_bytes + case.output_bytes
    total = 2 * size if full else size  # recomputing everything is counted as reading everything again
    problems = changed_files(case, files, lambda read: progress(read, total))
    recomputed, wrong = _recompute(
        case, files, seed, full, lambda done, units: progress(size + size * done // units, total)
    )
    return Verification(case, (*problems, *wrong), recomputed)


def _recompute(
    case: Case, files: TestcaseFiles, seed: Seed | None, full: bool, progress: Progress
) -> tuple[int, list[str]]:
    """Recomputes expected values; (how many, problems). Units and rows to look at are spread evenly."""
    operator, shape = case.operator, case.shape
    units = operator.units(shape)
    chosen = range(units) if full else np.unique(np.linspace(0, units - 1, SAMPLED_UNITS).astype(int))
    recomputed = 0
    with files.input(case).open("rb") as source, files.expected(case).open("rb") as target:
        for number, unit in enumerate(int(u) for u in chosen):
            if full:
                progress(number + 1, units)
            tensors = operator.read_unit(source, shape, unit)
            if seed is not None:
                values = np.concatenate([tensor.ravel() for tensor in tensors])
                drawn = draw_unit(seed, case.identity, unit, len(values), case.distribution)
                if not np.array_equal(values, drawn):
                    where = operator.unit_label(shape, unit)
                    return recomputed, [f"{shown(files.input(case))}: {where} is not what the seed gives."]
            count = operator.outputs(shape)[0].rows
            some = np.unique(np.linspace(0, count - 1, SAMPLED_ROWS).astype(np.intp))
            rows = slice(None) if full or not operator.independent_rows else some
            for tensor, result in enumerate(operator.oracle(shape, tensors, rows)):
                layout = operator.outputs(shape)[tensor]
                target.seek(operator.output_offset(shape, tensor, unit))
                kept = np.frombuffer(target.read(4 * layout.size), dtype="<f4")
                kept = kept.reshape(layout.rows, layout.columns)[rows]
                recomputed += kept.size
                # Another BLAS may sum in another order: float32's own spacing and a little is allowed.
                if not np.allclose(kept, result, rtol=2**-22, atol=1e-9):
                    place = _worst(operator, shape, tensor, unit, rows, np.abs(kept - result))
                    return recomputed, [
                        f"{shown(files.expected(case))}: {place} differs from the oracle by "
                        f"{np.abs(kept - result).max():.3g}; generate {case.name} again."
                    ]
    return recomputed, []


def _worst(
    operator: Operator,
    shape: Shape,
    tensor: int,
    unit: int,
    rows: slice | NDArray[np.intp],
    errors: NDArray[np.float64],
) -> Location:
    row, column = np.unravel_index(int(errors.argmax()), errors.shape)
    real_row = int(row) if isinstance(rows, slice) else int(rows[row])
    offset = operator.output_offset(shape, tensor, unit, real_row) // 4 + int(column)
    return operator.locate(shape, offset)
