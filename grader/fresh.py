"""Inputs for timed runs that no program can have seen: drawn from a nonce made when the grading starts.

One whole file is drawn for each timed test. Before every further run one unit (a batch), chosen at random, is drawn
again in place, so that each run has an input of its own at the cost of a few megabytes. A program that kept the
answer of an earlier run, if it found a way to, would get that unit wrong, and some rows of it are checked after every
run against the float64 oracle.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from grader.errors import MachineFault
from grader.operators.base import tolerance_of
from grader.sandbox.quarantine import open_output
from grader.scratch import scratch_folder
from grader.seeds import Seed, draw_unit
from grader.testcase import Case
from grader.workers import cores

CHECKED_ROWS = 8
"""Of the unit that was drawn again: few, and another unit each time."""

_MEMORY = Path("/dev/shm")
_ROOM = 4
"""Files are made in memory where this many times their size is free: writing 800 MB to a disk takes seconds."""

_CHOICE = random.SystemRandom()


@dataclass(frozen=True)
class _Draw:
    """A unit drawn again: its values, and what some rows of its output must be, per output tensor."""

    unit: int
    values: NDArray[np.float32]
    rows: NDArray[np.intp]
    expected: tuple[NDArray[np.float64], ...]


class FreshInput:
    """An input file of a case that changes from run to run. It is drawn in the background from the beginning, and the
    next unit, with its answer, while the program runs: what is left between two runs is to write the unit and to
    compare a few rows."""

    def __init__(self, case: Case, path: Path, seed: Callable[[str], Seed], background: ThreadPoolExecutor) -> None:
        self.path = path
        self._case = case
        self._seed = seed
        self._background = background
        self._units = case.operator.units(case.shape)
        self._present: _Draw | None = None
        self._given_up = threading.Event()
        self._whole: Future[None] = background.submit(self._draw_all)
        self._next: Future[_Draw] = background.submit(self._draw_one)

    def give_up(self) -> None:
        """Nobody wants the rest of what is being drawn."""
        self._given_up.set()

    def _draw_all(self) -> None:
        """Draw all units. numpy's generators and arithmetic let other threads run, so threads are enough."""
        seed = self._seed(secrets.token_hex(16))
        with self.path.open("wb") as file:
            file.truncate(self._case.input_bytes)
            file.write(self._case.operator.encode_header(self._case.shape))

        def make(unit: int) -> None:
            if not self._given_up.is_set():
                self._write(unit, self._values(seed, unit))

        with ThreadPoolExecutor(min(cores(), self._units)) as pool:
            for _ in pool.map(make, range(self._units)):
                pass

    def renew(self) -> None:
        """Before every run: put the unit that was drawn meanwhile into the file, and draw another. Raises MachineFault
        where the file cannot be written."""
        try:
            self._whole.result()
            self._present = self._next.result()
            self._write(self._present.unit, self._present.values)
        except OSError as error:
            raise MachineFault(
                f"A fresh input of {self._case.name} ({self._case.input_bytes:,} bytes) could not be written to "
                f"{self.path.parent}: {error.strerror}; free some space there."
            ) from error
        self._next = self._background.submit(self._draw_one)

    def _draw_one(self) -> _Draw:
        operator, shape = self._case.operator, self._case.shape
        unit = _CHOICE.randrange(self._units)
        values = self._values(self._seed(secrets.token_hex(16)), unit)
        count = min(layout.rows for layout in operator.outputs(shape))
        rows = np.array(sorted(_CHOICE.sample(range(count), min(CHECKED_ROWS, count))), dtype=np.intp)
        results = operator.oracle(
            shape, operator.split_unit(shape, values), rows if operator.independent_rows else slice(None)
        )
        expected = tuple(result if operator.independent_rows else result[rows] for result in results)
        return _Draw(unit, values, rows, expected)

    def _values(self, seed: Seed, unit: int) -> NDArray[np.float32]:
        case = self._case
        count = case.operator.unit_input_bytes(case.shape) // 4
        return draw_unit(seed, case.identity, unit, count, case.distribution)

    def _write(self, unit: int, values: NDArray[np.float32]) -> None:
        descriptor = os.open(self.path, os.O_WRONLY)
        try:
            data, offset = values.data.cast("B"), self._case.operator.input_offset(self._case.shape, unit)
            while data:
                written = os.pwrite(descriptor, data, offset)
                data, offset = data[written:], offset + written
        finally:
            os.close(descriptor)

    def problem(self, output: Path, tolerance: float | Mapping[str, float]) -> str:
        """What is wrong with the output for the present input, as a sentence; '' when the sampled rows are right."""
        case, operator, shape, drawn = self._case, self._case.operator, self._case.shape, self._present
        assert drawn is not None, "renew() comes before every run"
        try:
            descriptor = open_output(output)
        except OSError:
            return "on a fresh input it left no output file"
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:
            os.close(descriptor)
            return "on a fresh input its output is no regular file of its own"
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            size = facts.st_size
            if size != case.output_bytes:
                return f"on a fresh input its output has {size:,} bytes, {case.output_bytes:,} expected"
            for number, layout in enumerate(operator.outputs(shape)):
                limit = tolerance_of(tolerance, layout.name)
                for row, right in zip(drawn.rows, drawn.expected[number], strict=True):
                    os.lseek(file.fileno(), operator.output_offset(shape, number, drawn.unit, int(row)), os.SEEK_SET)
                    got = np.frombuffer(file.read(4 * layout.columns), dtype="<f4").astype(np.float64)
                    if got.shape != right.shape or not bool((np.abs(got - right) <= limit).all()):
                        where = operator.unit_label(shape, drawn.unit)
                        return f"on a fresh input its output is wrong: {where + ', ' if where else ''}row {row}"
        return ""


@contextlib.contextmanager
def fresh_input(case: Case, seed: Callable[[str], Seed]) -> Iterator[FreshInput]:
    """A fresh input of `case`, removed afterwards; `seed` turns a nonce into a seed. Drawing it begins here and goes on
    beside the block; `renew` waits for it."""
    with scratch_folder("fresh", _place(case.input_bytes), linger=True) as folder, ThreadPoolExecutor(1) as background:
        made = FreshInput(case, folder / "input", seed, background)
        try:
            yield made
        finally:
            made.give_up()


def _place(size: int) -> Path | None:
    """A folder in memory if there is ample room; None for the usual place of temporary files."""
    try:
        free = shutil.disk_usage(_MEMORY).free
        facts = Path("/proc/meminfo").read_text().split()
        available = int(facts[facts.index("MemAvailable:") + 1]) * 1024
    except (OSError, ValueError):
        return None
    return _MEMORY if min(free, available) >= _ROOM * size else None
