"""Inputs for timed runs that no program has seen, with known answers.

The first input is a copy of the testcase's own file, at the path where all further inputs will be, so that the graded
run looks to the program like every other run. Before each further run, some units (batches) change places and one is
drawn again. The right output is then the testcase's expected output, rearranged, except for the new unit. For that one
the grader computes a few rows with the oracle. So the whole output is checked for little more than the cost of the
comparison, and a program that somehow remembers earlier runs does not know which unit is where.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import secrets
import shutil
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import GraderFault, MachineFault
from grader.base.workers import cores
from grader.checking.check import Check, compare_output
from grader.checking.scan import Chunk, FileValues
from grader.course.catalogue import TestcaseFiles
from grader.course.catalogue.piece import draw_tensors
from grader.course.seeds import Seed
from grader.course.testcase import Case
from grader.operators.base import Tensors
from grader.operators.layout import Run, read_exactly, write_exactly
from grader.operators.tolerance import Tolerance, limit_of
from grader.sandbox.quarantine import open_output
from grader.sandbox.scratch import scratch_folder

ORACLE_FLOPS = 3e8
"""The oracle's work for the rows of a new unit: about 0.2 s on one core, less than a run takes."""
MIN_CHECKED_ROWS = 8
MOVED_BYTES = 4 << 20
"""Size of the units that change places before a run; writing them to memory takes a few milliseconds."""
_COPY_BYTES = 8 << 20

_MEMORY = Path("/dev/shm")
_ROOM = 4
"""Files are made in memory if this many times their size is free, because writing 800 MB to a disk takes seconds."""

_CHOICE = random.SystemRandom()

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class _Draw:
    """A unit that is drawn again: its place, its tensors, and for each output tensor the expected values of `rows`."""

    unit: int
    tensors: Tensors
    rows: NDArray[np.intp]
    expected: tuple[NDArray[np.float64], ...]


@dataclass(frozen=True)
class Answer:
    """The right output for one input: place p holds the output of the testcase's unit `order[p]`, except at the place
    of the unit `drawn`."""

    case: Case
    expected: Path
    order: tuple[int, ...]
    drawn: _Draw

    def problem(self, output: Path, tolerance: Tolerance) -> str:
        """What is wrong with the file `output`, as a phrase without values; '' if it is right. Raises GraderFault if
        the testcase's expected output cannot be read."""
        operator, shape = self.case.operator, self.case.shape
        try:
            file = self.expected.open("rb", buffering=0)
        except OSError as error:
            raise GraderFault(f"{self.expected} cannot be read: {error.strerror}; generate it again.") from error
        with file:
            found = compare_output(operator, shape, _Rearranged(self, file.fileno()), output, tolerance)
        return _phrase(found) or self._wrong_row(output, tolerance)

    def _wrong_row(self, output: Path, tolerance: Tolerance) -> str:
        """The first wrong row among the checked rows of the new unit, as a phrase, or ''. The size of the file must
        have been checked already."""
        operator, shape = self.case.operator, self.case.shape
        descriptor = open_output(output)
        try:
            for number, layout in enumerate(operator.output_layouts(shape)):
                limit = limit_of(tolerance, layout.tensor.name).largest
                for row, right in zip(self.drawn.rows, self.drawn.expected[number], strict=True):
                    stored = np.empty(layout.tensor.columns, layout.type.storage)
                    read_exactly(descriptor, stored, layout.offset(self.drawn.unit, int(row)))
                    got = layout.type.decode(stored).astype(np.float64)
                    if not bool((np.abs(got - right) <= limit).all()):
                        label = operator.unit_label(shape, self.drawn.unit)
                        return f"on a fresh input its output is wrong: {label + ', ' if label else ''}row {row}"
        finally:
            os.close(descriptor)
        return ""


def _phrase(found: Check) -> str:
    if found.kind == "missing":
        return "on a fresh input it left no output file"
    if found.kind == "not_a_file":
        return "on a fresh input its output is not a regular file"
    if found.kind == "size":
        return f"on a fresh input its output has {found.found_bytes:,} bytes, {found.expected_bytes:,} expected"
    if found.kind == "changed":
        return "on a fresh input its output changed after the program ended"
    if found.kind == "precision":
        return "on a fresh input its output is less precise than it may be"
    return f"on a fresh input its output is wrong: {found.first.location}" if found.first is not None else ""


class _Rearranged:
    """The values of an `Answer`, read from the testcase's expected output. The values of the new unit are unknown.
    There the found values are taken as right, so that only NaN counts as wrong."""

    def __init__(self, answer: Answer, descriptor: int) -> None:
        operator, shape = answer.case.operator, answer.case.shape
        self._answer = answer
        self._values = FileValues(descriptor)
        self._layouts = operator.expected_layouts(shape)
        self._order = np.array(answer.order)

    def read(self, chunk: Chunk, got: NDArray[np.float32]) -> NDArray[np.float32]:
        layout, run = self._layouts[chunk.number], chunk.expected
        columns = layout.tensor.columns
        begins = run.first + run.stride * np.arange(run.repeats)[:, None]
        places, rows, _ = layout.find((begins + np.arange(0, run.length, columns) * run.value_bytes).ravel())
        right = np.array(got, copy=True).reshape(-1, columns)
        offsets = layout.offsets(self._order[places], rows)
        apart = np.flatnonzero((np.diff(offsets) != columns * run.value_bytes) | (np.diff(places) != 0)) + 1
        for first, end in itertools.pairwise([0, *apart.tolist(), len(offsets)]):
            if places[first] != self._answer.drawn.unit:
                size = (end - first) * columns
                part = Run(int(offsets[first]), size, size * run.value_bytes, 1, run.value_bytes)
                right[first:end] = self._values.read_run(part).reshape(-1, columns)
        return right.reshape(got.shape)


class FreshInput:
    """An input file of a case that changes from run to run. A background thread first copies the testcase's input, and
    then draws the next unit and its answer while the program runs. So only some units are written between two runs."""

    def __init__(
        self,
        case: Case,
        files: TestcaseFiles,
        path: Path,
        seed: Callable[[str], Seed],
        background: ThreadPoolExecutor,
    ) -> None:
        self._path = path
        self._case = case
        self.files = files
        self._seed = seed
        self._background = background
        self._order = list(range(case.operator.units(case.shape)))
        self._redrawn: int | None = None
        self._given_up = threading.Event()
        self._whole: Future[None] = background.submit(self._copy)
        self._next: Future[_Draw] = background.submit(self._draw)

    @property
    def path(self) -> Path:
        """The file, a copy of the testcase's input until `renew` is called. Raises MachineFault if the disk is full."""
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

    def renew(self) -> Answer:
        """Change the file before every run except the first: move some units, write the new unit, which was drawn in
        the meantime, and begin to draw another. Raises MachineFault if the file cannot be written."""
        with self._room():
            path, operator, shape = self.path, self._case.operator, self._case.shape
            drawn = self._next.result()
            with path.open("r+b", buffering=0) as target, self.files.input(self._case).open("rb", buffering=0) as own:
                for place in self._moved(drawn.unit):
                    tensors = operator.read_unit(own, shape, self._order[place])
                    operator.write_unit(target.fileno(), shape, place, tensors)
                operator.write_unit(target.fileno(), shape, drawn.unit, drawn.tensors)
        self._redrawn = drawn.unit
        self._next = self._background.submit(self._draw)
        return Answer(self._case, self.files.expected(self._case), tuple(self._order), drawn)

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

    @contextlib.contextmanager
    def _room(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise MachineFault(
                f"A fresh input of {self._case.name} ({self._case.input_bytes:,} bytes) could not be written to "
                f"{self._path.parent}: {error.strerror}; free some space there."
            ) from error

    def _draw(self) -> _Draw:
        operator, shape = self._case.operator, self._case.shape
        unit = _CHOICE.randrange(len(self._order))
        tensors = draw_tensors(
            operator,
            shape,
            self._case.distribution,
            self._seed(secrets.token_hex(16)),
            self._case.identity,
            unit,
        )
        rows = self._checked_rows()
        results = operator.oracle(shape, tensors, rows if operator.independent_rows else slice(None))
        expected = tuple(result if operator.independent_rows else result[rows] for result in results)
        return _Draw(unit, tensors, rows, expected)

    def _checked_rows(self) -> NDArray[np.intp]:
        operator, shape = self._case.operator, self._case.shape
        rows = min(layout.rows for layout in operator.outputs(shape))
        each = operator.flops(shape) / len(self._order) / rows
        count = min(rows, max(MIN_CHECKED_ROWS, int(ORACLE_FLOPS / each)))
        return np.array(sorted(_CHOICE.sample(range(rows), count)), dtype=np.intp)


@contextlib.contextmanager
def fresh_input(case: Case, files: TestcaseFiles, seed: Callable[[str], Seed]) -> Iterator[FreshInput]:
    """Fresh inputs of `case`, removed after the block; `seed` turns a nonce into a seed. The first input is made while
    the block runs; `path` and `renew` wait for it."""
    with scratch_folder("run", _place(case.input_bytes), linger=True) as folder, ThreadPoolExecutor(1) as background:
        made = FreshInput(case, files, folder / "input", seed, background)
        try:
            yield made
        finally:
            made.give_up()


def one_ahead(items: Iterable[T], opened: Callable[[T], AbstractContextManager[U]]) -> Generator[tuple[T, U]]:
    """Yield each item with the value of its context `opened(item)`. The context of the next item is entered before an
    item is yielded, and an item's context is left when the next item is requested. A caller that does not request all
    items must close the generator."""
    waiting: deque[tuple[T, U, contextlib.ExitStack]] = deque()
    try:
        for item in items:
            stack = contextlib.ExitStack()
            waiting.append((item, stack.enter_context(opened(item)), stack))
            if len(waiting) > 1:
                yield waiting[0][:2]
                waiting.popleft()[2].close()
        for item, value, _ in waiting:
            yield item, value
    finally:
        for _, _, stack in waiting:
            stack.close()


def _place(size: int) -> Path | None:
    """A folder in memory if it has plenty of room; None for the usual folder for temporary files."""
    try:
        free = shutil.disk_usage(_MEMORY).free
        facts = Path("/proc/meminfo").read_text().split()
        available = int(facts[facts.index("MemAvailable:") + 1]) * 1024
    except (OSError, ValueError):
        return None
    return _MEMORY if min(free, available) >= _ROOM * size else None
