"""Inputs for timed runs that no program can have seen: drawn from a nonce made when the grading starts.

One whole file is drawn for each timed test. Before every further run one unit (a batch), chosen at random, is drawn
again in place, so that each run has an input of its own at the cost of a few megabytes. A program that kept the
answer of an earlier run, if it found a way to, would get that unit wrong, and it is among those that are checked:
some rows of it and of a few others, against the float64 oracle.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from grader.check import open_untrusted
from grader.errors import MachineFault
from grader.operators.base import tolerance_of
from grader.scratch import scratch_folder
from grader.seeds import Seed, draw_unit
from grader.testcase import Case
from grader.workers import cores

CHECKED_UNITS = 1
"""Beside the unit that was drawn again: few, so that checking costs little beside a run of a quarter of a second;
in six runs or more another one is looked at each time."""
CHECKED_ROWS = 8

_MEMORY = Path("/dev/shm")
_ROOM = 4
"""Files are made in memory where this many times their size is free: writing 800 MB to a disk takes seconds."""

_CHOICE = random.SystemRandom()


class FreshInput:
    """An input file of a case that changes from run to run."""

    def __init__(self, case: Case, path: Path, seed: Callable[[str], Seed]) -> None:
        self.path = path
        self._case = case
        self._seed = seed
        self._units = case.operator.units(case.shape)
        self._renewed = 0

    def draw(self) -> None:
        """Draw all units. numpy's generators and arithmetic let other threads run, so threads are enough."""
        seed = self._seed(secrets.token_hex(16))
        with self.path.open("wb") as file:
            file.truncate(self._case.input_bytes)
            file.write(self._case.operator.encode_header(self._case.shape))
        with ThreadPoolExecutor(min(cores(), self._units)) as pool:
            for _ in pool.map(lambda unit: self._draw_unit(seed, unit), range(self._units)):
                pass

    def renew(self) -> None:
        """Draw one unit again."""
        self._renewed = _CHOICE.randrange(self._units)
        self._draw_unit(self._seed(secrets.token_hex(16)), self._renewed)

    def _draw_unit(self, seed: Seed, unit: int) -> None:
        case, operator = self._case, self._case.operator
        count = operator.unit_input_bytes(case.shape) // 4
        values = draw_unit(seed, case.identity, unit, count, case.distribution)
        descriptor = os.open(self.path, os.O_WRONLY)
        try:
            data, offset = values.data.cast("B"), operator.input_offset(case.shape, unit)
            while data:
                written = os.pwrite(descriptor, data, offset)
                data, offset = data[written:], offset + written
        finally:
            os.close(descriptor)

    def problem(self, output: Path, tolerance: float | Mapping[str, float]) -> str:
        """What is wrong with the output for the present input, as a sentence; '' when the sampled rows are right."""
        case, operator, shape = self._case, self._case.operator, self._case.shape
        try:
            descriptor = open_untrusted(output)
        except OSError:
            return "on a fresh input it left no output file"
        with os.fdopen(descriptor, "rb", buffering=0) as file, self.path.open("rb") as source:
            size = os.fstat(file.fileno()).st_size
            if size != case.output_bytes:
                return f"on a fresh input its output has {size:,} bytes, {case.output_bytes:,} expected"
            others = _CHOICE.sample(range(self._units), min(CHECKED_UNITS, self._units))
            for unit in {self._renewed, *others}:
                tensors = operator.read_unit(source, shape, unit)
                layouts = operator.outputs(shape)
                count = min(layout.rows for layout in layouts)
                rows = np.array(sorted(_CHOICE.sample(range(count), min(CHECKED_ROWS, count))), dtype=np.intp)
                asked = rows if operator.independent_rows else slice(None)
                for number, expected in enumerate(operator.oracle(shape, tensors, asked)):
                    layout = layouts[number]
                    limit = tolerance_of(tolerance, layout.name)
                    for place, row in enumerate(rows):
                        os.lseek(file.fileno(), operator.output_offset(shape, number, unit, int(row)), os.SEEK_SET)
                        got = np.frombuffer(file.read(4 * layout.columns), dtype="<f4").astype(np.float64)
                        right = expected[place if operator.independent_rows else row]
                        if got.shape != right.shape or not bool((np.abs(got - right) <= limit).all()):
                            where = operator.unit_label(shape, unit)
                            return f"on a fresh input its output is wrong: {where + ', ' if where else ''}row {row}"
        return ""


@contextlib.contextmanager
def fresh_input(case: Case, seed: Callable[[str], Seed]) -> Iterator[FreshInput]:
    """A fresh input of `case`, removed afterwards; `seed` turns a nonce into a seed. Raises MachineFault where it
    cannot be written."""
    try:
        with scratch_folder("fresh", _place(case.input_bytes)) as folder:
            made = FreshInput(case, folder / "input", seed)
            made.draw()
            yield made
    except OSError as error:
        raise MachineFault(
            f"A fresh input of {case.name} ({case.input_bytes:,} bytes) could not be written to "
            f"{tempfile.gettempdir()}: {error.strerror}; free some space there."
        ) from error


def _place(size: int) -> Path | None:
    """A folder in memory if there is ample room; None for the usual place of temporary files."""
    try:
        free = shutil.disk_usage(_MEMORY).free
        facts = Path("/proc/meminfo").read_text().split()
        available = int(facts[facts.index("MemAvailable:") + 1]) * 1024
    except (OSError, ValueError):
        return None
    return _MEMORY if min(free, available) >= _ROOM * size else None
