"""The inputs of runs: each a file of its own in the same kind of place, so that a program cannot tell its runs apart by
where its input lies; and for timed runs, inputs that no program has seen, with known answers.

The first input is a copy of the testcase's own file, at the path where all further inputs will be, so that the graded
run looks to the program like every other run. Before each further run, some units (batches) change places and one is
new. The right output is then the testcase's expected output, rearranged, except for the new unit. The new unit has
newly drawn values, and the oracle computes a few rows of its output. Where the oracle would have to compute all rows
(gradients), the new unit is a copy of another unit with a few rows drawn again: its whole output follows from the other
unit's output and from these rows (`Operator.with_other_rows`). So the whole output is checked for little more than the
cost of the comparison, and a program that somehow remembers earlier runs does not know which unit is where.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import GraderFault, MachineFault
from grader.base.workers import cores
from grader.checking.check import Check, compare_output
from grader.checking.property_check import Given
from grader.checking.scan import Chunk, FileValues
from grader.course.catalogue import TestcaseFiles
from grader.course.distributions import Constant, Normal, Uniform
from grader.course.seeds import Seed, draw_tensors, draw_unit
from grader.course.testcase import Case, Suite
from grader.operators.base import Tensors
from grader.operators.layout import Layout, Stretch, write_exactly
from grader.operators.tolerance import Tolerance
from grader.records.disclosure import Doubt
from grader.sandbox.scratch import scratch_folder

ORACLE_FLOPS = 3e8
"""The oracle's work for the new rows of a unit: about 0.2 s on one core, less than a run takes."""
MIN_CHECKED_ROWS, MOST_CHECKED_ROWS = 8, 1 << 20
"""Choosing, computing and comparing a row costs more than the oracle's work for it where a row is one number."""
LONG_DRAW_S = 1.0
"""Processor time. A new unit that takes longer to draw, with its right output, serves all further runs of the test: no
run knows what the one before it was given, and 30 runs would otherwise wait for 30 oracles of up to 10 s each."""
MOVED_BYTES = 4 << 20
"""Size of the units that change places before a run; writing them to memory takes a few milliseconds."""
_COPY_BYTES = 8 << 20
_GAP_BYTES = 1 << 16
"""Rows at most this far apart are read together, with the bytes between them."""

_MEMORY = Path("/dev/shm")
_ROOM = 4
"""Files are made in memory if this many times their size is free, because writing 800 MB to a disk takes seconds."""

_CHOICE = random.SystemRandom()

Input = TypeVar("Input", bound="OwnInput")


@dataclass(frozen=True)
class _Draw:
    """A new unit: its place, its tensors, and for each output tensor the right values; NaN where they are unknown."""

    unit: int
    tensors: Tensors
    right: Tensors
    seconds: float
    """Processor time that drawing it took."""


@dataclass(frozen=True)
class Answer:
    """The right output for one input: place p holds the output of the testcase's unit `order[p]`, except at the place
    of the unit `drawn`."""

    case: Case
    files: TestcaseFiles
    order: tuple[int, ...]
    drawn: _Draw

    def problem(self, output: Path, tolerance: Tolerance) -> Doubt | None:
        """What is wrong with the file `output`, without values; None if it is right. Raises GraderFault if the
        testcase's expected output cannot be read."""
        operator, shape, expected = self.case.operator, self.case.shape, self.files.expected(self.case)
        try:
            file = expected.open("rb", buffering=0)
        except OSError as error:
            raise GraderFault(f"{expected} cannot be read: {error.strerror}; generate it again.") from error
        with file:
            given = Given(self.files.input(self.case), self.order, self.drawn.unit, self.drawn.tensors)
            right = _Rearranged(self, file.fileno())
            found = compare_output(operator, shape, right, output, tolerance, given, expected)
        return _doubt(found)


def _doubt(found: Check) -> Doubt | None:
    match found.kind:
        case "missing":
            return Doubt("on a fresh input it left no output file")
        case "not_a_file":
            return Doubt("on a fresh input its output is not a regular file")
        case "size":
            sizes = f"{found.found_bytes:,} bytes, {found.expected_bytes:,} expected"
            return Doubt(f"on a fresh input its output has {sizes}")
        case "changed":
            return Doubt("on a fresh input its output changed after the program ended")
        case "precision":
            return Doubt("on a fresh input its output is less precise than it may be")
    if not found.reason:
        return None
    return Doubt("on a fresh input its output is wrong", str(found.first.location) if found.first else found.reason)


class _Rearranged:
    """The values of an `Answer`, from the testcase's expected output. Where values of the new unit are unknown, the
    output's own values are taken as right, so that only NaN counts as wrong."""

    def __init__(self, answer: Answer, descriptor: int) -> None:
        self._drawn = answer.drawn
        self._values = FileValues(descriptor)
        self._layouts = answer.case.operator.expected_layouts(answer.case.shape)
        self._order = np.array(answer.order)

    def read(self, chunk: Chunk, got: NDArray[Any]) -> NDArray[Any]:
        layout, run = self._layouts[chunk.number], chunk.expected
        columns = layout.tensor.columns
        begins = run.first + run.stride * np.arange(run.repeats)[:, None]
        places, rows, _ = layout.find((begins + np.arange(0, run.length, columns) * run.value_bytes).ravel())
        new = places == self._drawn.unit
        if not new.any() and (self._order[places] == places).all():
            return self._values.read(chunk, got)
        right = self._rows(layout, layout.offset(self._order[places], rows))
        if new.any():
            values = self._drawn.right[chunk.number][rows[new]]
            right[new] = np.where(np.isnan(values), got.reshape(-1, columns)[new], values)
        return right.reshape(got.shape)

    def _rows(self, layout: Layout, offsets: NDArray[np.int64]) -> NDArray[Any]:
        """The rows that begin at these bytes. Rows of interleaved units are scattered over the file, so this reads
        whole pieces of the file and takes rows from them."""
        size, columns, storage = layout.type.bytes, layout.tensor.columns, layout.type.storage
        row = np.dtype(f"V{columns * size}")  # numpy copies such a value as a whole
        found = np.empty(len(offsets), row)
        by_place = np.argsort(offsets, kind="stable")
        for part in np.split(by_place, np.flatnonzero(np.diff(offsets[by_place]) > _GAP_BYTES) + 1):
            first, end = int(offsets[part[0]]), int(offsets[part[-1]]) + row.itemsize
            run = Stretch(first, (end - first) // size, end - first, 1, size)
            from_each = np.ndarray(
                (run.length - columns + 1,), row, self._values.read_run(run, storage), strides=(size,)
            )
            found[part] = from_each[(offsets[part] - first) // size]
        return found.view(storage).reshape(-1, columns)


class OwnInput:
    """A copy of a case's input at a path of its own. A background thread makes it."""

    def __init__(self, case: Case, files: TestcaseFiles, path: Path, background: ThreadPoolExecutor) -> None:
        self._path = path
        self._case = case
        self.files = files
        self._given_up = threading.Event()
        self._whole: Future[None] = background.submit(self._copy)

    @property
    def path(self) -> Path:
        """The file, a copy of the testcase's input. Raises MachineFault if the disk is full."""
        with self._room():
            self._whole.result()
        return self._path

    def give_up(self) -> None:
        """Cancel the copy in progress."""
        self._given_up.set()

    def _copy(self) -> None:
        size = self._case.input_bytes
        with self.files.input(self._case).open("rb", buffering=0) as source, self._path.open("wb") as target:
            target.truncate(size)

            def copy(first: int) -> None:
                if not self._given_up.is_set():
                    data = os.pread(source.fileno(), min(_COPY_BYTES, size - first), first)
                    write_exactly(target.fileno(), memoryview(data), first)

            with ThreadPoolExecutor(min(8, cores())) as pool:
                for _ in pool.map(copy, range(0, size, _COPY_BYTES)):
                    pass

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MachineFault(
                f"A fresh input of {self._case.name} ({self._case.input_bytes:,} bytes) could not be written to "
                f"{self._path.parent}: {error.strerror}; free some space there."
            ) from error


class FreshInput(OwnInput):
    """An input file of a case; its contents change from run to run. A background thread first copies the testcase's
    input, and then draws the next unit and its answer while the program runs. Between two runs, only some units are
    written."""

    def __init__(
        self, suite: Suite, case: Case, files: TestcaseFiles, path: Path, background: ThreadPoolExecutor
    ) -> None:
        super().__init__(case, files, path, background)
        self._suite = suite
        self._background = background
        self._order = list(range(case.operator.units(case.shape)))
        self._redrawn: int | None = None
        self._next: Future[_Draw] = background.submit(self._draw)

    def renew(self) -> Answer:
        """Change the file before every run except the first: move some units, write the new unit, which was drawn in
        the meantime, and begin to draw another, unless that takes long. Raises MachineFault if the file cannot be
        written."""
        with self._room():
            self._whole.result()
            drawn, moved = self._next.result(), self._moved(self._next.result().unit)
            for layout, values in zip(self._case.operator.input_layouts(self._case.shape), drawn.tensors, strict=True):
                for place in moved:
                    layout.stored(self._bytes, place)[:] = layout.stored(self._own_bytes, self._order[place])
                new = layout.stored(self._bytes, drawn.unit)
                new[:] = layout.type.encode(values).reshape(new.shape)
        self._redrawn = drawn.unit
        if drawn.seconds < LONG_DRAW_S:
            self._next = self._background.submit(self._draw)
        return Answer(self._case, self.files, tuple(self._order), drawn)

    # A unit's rows may be scattered over the file. Through a mapping, numpy moves all of them at once; thousands of
    # system calls would each wait for the threads that compare and draw.

    @cached_property
    def _bytes(self) -> NDArray[np.uint8]:
        """The file. It already has its full size, so writing needs no more room."""
        return np.memmap(self._path, np.uint8, "r+")

    @cached_property
    def _own_bytes(self) -> NDArray[np.uint8]:
        return np.memmap(self.files.input(self._case), np.uint8, "r")

    def _moved(self, drawn: int) -> list[int]:
        """Let units change places in `self._order`, and return the places that must be written. They include the place
        of the unit that was drawn for the previous run."""
        size = self._case.operator.unit_input_bytes(self._case.shape)
        count = min(len(self._order), max(2, MOVED_BYTES // size))
        places = set(_CHOICE.sample(range(len(self._order)), count))
        if self._redrawn is not None:
            places.add(self._redrawn)
        chosen = list(places)
        _CHOICE.shuffle(chosen)
        units = [self._order[place] for place in chosen]
        for place, unit in zip(chosen, units[1:] + units[:1], strict=True):
            self._order[place] = unit
        return [place for place in chosen if place != drawn]

    def _draw(self) -> _Draw:
        begin = time.thread_time()
        unit, tensors, right = self._drawn()
        return _Draw(unit, tensors, right, time.thread_time() - begin)

    def _drawn(self) -> tuple[int, Tensors, Tensors]:
        case = self._case
        operator, shape = case.operator, case.shape
        unit, seed = _CHOICE.randrange(len(self._order)), self._suite.fresh_seed(case, secrets.token_hex(16))
        if not operator.independent_rows and (changed := self._with_other_rows(seed)) is not None:
            return unit, *changed
        tensors = draw_tensors(operator, shape, case.distribution, seed, case.identity, unit)
        floats = all(tensor.type.computed.kind == "f" for tensor in operator.outputs(shape))
        if not (operator.independent_rows and floats):  # no integer stands for an unknown value, as NaN does
            outputs = zip(operator.outputs(shape), operator.oracle(shape, tensors), strict=True)
            return unit, tensors, [values.astype(tensor.type.computed) for tensor, values in outputs]
        rows = self._some_rows(min(tensor.rows for tensor in operator.outputs(shape)))
        right = [np.full((each.rows, each.columns), np.nan, each.type.computed) for each in operator.outputs(shape)]
        for whole, known in zip(right, operator.oracle(shape, tensors, rows), strict=True):
            whole[rows] = known
        return unit, tensors, right

    def _some_rows(self, rows: int) -> NDArray[np.intp]:
        return some_rows(rows, self._case.operator.flops(self._case.shape) / len(self._order) / rows)

    def _with_other_rows(self, seed: Seed) -> tuple[Tensors, Tensors] | None:
        """The tensors and the right outputs of some unit with some rows drawn again."""
        case = self._case
        operator, shape = case.operator, case.shape
        unit, distribution = _CHOICE.randrange(len(self._order)), case.distribution
        if not isinstance(distribution, Uniform | Constant | Normal):
            return None
        kept = np.memmap(self.files.expected(case), np.uint8, "r")
        tensors, outputs = (
            [layout.values_of(file, unit) for layout in layouts]
            for layouts, file in (
                (operator.input_layouts(shape), self._own_bytes),
                (operator.expected_layouts(shape), kept),
            )
        )
        return operator.with_other_rows(
            shape,
            tensors,
            outputs,
            self._some_rows(len(tensors[0])),
            lambda count: draw_unit(seed, case.identity, unit, count, distribution),
        )


def some_rows(rows: int, flops: float) -> NDArray[np.intp]:
    """Random row numbers below `rows` in ascending order, as many as ORACLE_FLOPS and MOST_CHECKED_ROWS allow. The
    oracle needs so many `flops` for a row."""
    count = min(rows, MOST_CHECKED_ROWS, max(MIN_CHECKED_ROWS, int(ORACLE_FLOPS / flops)))
    chosen = np.random.default_rng(secrets.randbits(128)).choice(rows, count, replace=False, shuffle=False)
    return np.sort(chosen).astype(np.intp)


@contextlib.contextmanager
def own_input(case: Case, files: TestcaseFiles) -> Iterator[OwnInput]:
    """A copy of the input of `case`, removed after the block. It is made while the block runs; `path` waits for it."""
    with _made_in(case, partial(OwnInput, case, files)) as made:
        yield made


@contextlib.contextmanager
def fresh_input(case: Case, files: TestcaseFiles, suite: Suite) -> Iterator[FreshInput]:
    """Fresh inputs of `case`, removed after the block. The first input is made while the block runs; `path` and `renew`
    wait for it."""
    with _made_in(case, partial(FreshInput, suite, case, files)) as made:
        yield made


@contextlib.contextmanager
def _made_in(case: Case, make: Callable[[Path, ThreadPoolExecutor], Input]) -> Iterator[Input]:
    with scratch_folder("run", _place(case.input_bytes), linger=True) as folder, ThreadPoolExecutor(1) as background:
        made = make(folder / "input", background)
        try:
            yield made
        finally:
            made.give_up()


def _place(size: int) -> Path | None:
    """A folder in memory if there is plenty of room; None means the usual folder for temporary files."""
    try:
        free = shutil.disk_usage(_MEMORY).free
        facts = Path("/proc/meminfo").read_text().split()
        available = int(facts[facts.index("MemAvailable:") + 1]) * 1024
    except (OSError, ValueError):
        return None
    return _MEMORY if min(free, available) >= _ROOM * size else None
