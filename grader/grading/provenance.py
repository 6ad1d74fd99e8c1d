"""Decides whether a Python program computed on the processor, from where its values came from.

The program's process counts the values that did not simply move between the input, the device and the output
(`grader.python.provenance`), and records all that it copies and launches. A few such values are normal. If there are
more, the program runs again on other values, with the same random numbers, and is told the times of the first run
whenever it measures one. What the records do not explain (`moved_values`), the processor computed. If it may have
chosen among many values that they explain, further runs show whether they are explained by chance.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from grader.course.assignment import Limits
from grader.course.testcase import Case
from grader.grading.moved_values import Computed, compare, compare_runs
from grader.grading.other_input import copy_input, write_other_values
from grader.grading.run_record import Entry, read_record
from grader.programs.engine import Engine
from grader.programs.run import Recording, open_recording, run_program
from grader.programs.submission import Submission
from grader.programs.trace import Provenance, Trace, Unexplained
from grader.python.value_sources import Source
from grader.sandbox.scratch import scratch_folder
from grader.timing.evidence import FEW_VALUES, too_many

_DOES = {
    "written": "writes {count:,} {values} to the output that {were} not copied from the device",
    "uploads": "copies {count:,} {values} to the device that {are} neither in the input nor copied from the device",
    "arguments": "gives launches, or places and sizes of arrays, {count:,} {values} computed from the input's values",
}
_RULE = (
    "The processor computed {them} from the input's values. Kernels must do this work; the processor may only move "
    "values, in another shape, order or type, and not choose them by their values."
)
_REPEATS = 2
"""How often all runs are repeated, because a program that chooses by a clock may twice choose the same. Chosen."""
_BITS_OF_A_ROW, _BITS_OF_FEW_ROWS = 2, 8
"""How much information an honest program may seem to hide, for each row of the output: for all of them, and if it is
more, for as many as may have an unexplained value. A row's maximum or sum with so few bits is too coarse. Chosen."""

_NAMES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "e4m3": "fp8e4nv", "e5m2": "fp8e5"}
"""Triton's names for the types of numbers."""


class _UnknownError(Exception):
    """Why the runs do not show whether the processor computed."""


@dataclass(frozen=True)
class HostWork:
    """A sentence on the values that the processor computed, or, if that is not `proved`, may have computed."""

    sentence: str
    proved: bool


@dataclass
class FirstRun:
    """The graded run of a Python program, kept until it is clear where its values came from."""

    recording: Recording
    _folder: contextlib.ExitStack
    _found: Provenance | None = None
    """What its trace says, if it is to be compared with other runs."""
    _input: Path = Path()
    """A copy of its input, for that comparison."""

    def keep(self, trace: Trace | None, case: Case, input_file: Path) -> None:
        """Keep a copy of its input if, by its trace, the processor may have done the work. Raises MachineFault if the
        machine has no room for it."""
        found = trace.provenance if trace is not None else None
        if found is not None and too_many(found, case):
            self._found = found
            self._input = self._folder.enter_context(scratch_folder("run", linger=True)) / "input"
            copy_input(input_file, self._input)

    def host_work(
        self, engine: Engine, program: Path, case: Case, submission: Submission, *, wall_s: float, limits: Limits
    ) -> HostWork | None:
        """What the program computed on the processor; None if it only moved values. Runs the program again if this run
        left it open. Raises MachineFault if the machine has no room for that."""
        if self._found is None:
            return None
        try:
            return self._compare(engine, program, case, submission, wall_s=wall_s, limits=limits)
        except _UnknownError as error:
            return HostWork(f"It could not be determined whether the processor computed its output: {error}.", False)

    def _compare(
        self, engine: Engine, program: Path, case: Case, submission: Submission, *, wall_s: float, limits: Limits
    ) -> HostWork | None:
        assert self._found is not None
        if (one := read_record(self.recording.file)) is None:
            raise _UnknownError("it launches too many kernels")
        partial = any(entry.omitted for entry in one)
        if partial and too_many(replace(self._found, arguments=Unexplained(0, 0)), case):
            raise _UnknownError("it copies too much")
        times = (number for entry in one if entry.kind == "times" for number in entry.numbers)
        times_ms = [number for number in times if isinstance(number, int | float)]

        def again(path: Path) -> list[Entry] | None:
            with (
                open_recording(self.recording.seed, times_ms) as recording,
                run_program(
                    engine,
                    program,
                    path,
                    output_bytes=case.output_bytes,
                    wall_s=wall_s,
                    limits=limits,
                    recording=recording,
                ) as run,
            ):
                return read_record(recording.file) if run.outcome.exit_code == 0 else None

        def another() -> tuple[list[Entry], Source]:
            changed = self._input.with_name(f"changed{len(runs)}")
            write_other_values(case, self._input, changed)
            if (other := again(changed)) is None:
                raise _UnknownError("it did not end normally when it ran again")
            if _form(one) != _form(other):
                raise _UnknownError("what it copies and launches depends on the input's values, or on chance")
            runs.append((changed, other))
            return other, _source(changed, case)

        runs = [(self._input, one)]
        most_hidden_bits = _most_hidden_bits(case)
        found = compare_runs(one, _source(self._input, case), another, most_hidden_bits)
        if found.computed is None and found.hidden_bits <= most_hidden_bits:
            return None
        if partial or np.isinf(found.hidden_bits):  # an array that had no room might explain the others
            raise _UnknownError("it copies too much")
        if found.computed is None:
            raise _UnknownError("its values are so few that other places hold the same ones by chance")
        for path, first in runs * _REPEATS:
            values, same = _source(path, case), again(path)
            if same is None or _form(first) != _form(same) or compare([first, same], [values, values]).computed:
                raise _UnknownError("it does not do the same in every run")
        return HostWork(_sentence(found.computed, submission), proved=True)


def _most_hidden_bits(case: Case) -> float:
    rows = sum(layout.values // layout.tensor.columns for layout in case.operator.output_layouts(case.shape))
    return float(max(_BITS_OF_A_ROW * rows, _BITS_OF_FEW_ROWS * min(FEW_VALUES, rows)))


@contextlib.contextmanager
def first_run() -> Iterator[FirstRun]:
    """For the graded run of a Python program."""
    with open_recording(secrets.token_hex(16)) as recording, contextlib.ExitStack() as folder:
        yield FirstRun(recording, folder)


def _form(record: Sequence[Entry]) -> list[tuple[object, ...]]:
    return [entry.form for entry in record]


def _sentence(found: Computed, submission: Submission) -> str:
    name = submission.sources[0]
    code = submission.line(name, found.line).strip()
    words = {"values": "value", "were": "was", "are": "is", "them": "it"} if found.count == 1 else {}
    words = {"values": "values", "were": "were", "are": "are", "them": "them", **words}
    does = _DOES[found.kind].format(count=found.count, **words)
    does = f"{name}:{found.line} {does}: `{code}`." if code else f"The program {does}."
    return f"{does} {_RULE.format(**words)}"


def _source(path: Path, case: Case) -> Source:
    """An input file, with the type of its values if it has only one."""
    types = {_NAMES[layout.type.name] for layout in case.operator.input_layouts(case.shape)}
    return Source(np.memmap(path, np.uint8, "r"), types.pop() if len(types) == 1 else "")
