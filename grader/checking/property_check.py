"""Checks an output by the operator's own `check`, for problems with several right answers.

The output is a hostile program's, and `check` is code of the course that may trust its numbers, so it runs in the room
(grader.sandbox.room) with limits. Where it fails there, the output is wrong, unless `check` fails on the right answer
in the expected output, too: then the operator is at fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from grader.base.errors import GraderFault
from grader.base.sizes import Whole
from grader.operators import Operator, Shape, operator_in, source_of
from grader.operators.base import Tensors, Violation
from grader.operators.layout import Layout
from grader.sandbox.room import Sentence, Unreadable, confined, shortened

_CPU_S = 60


@dataclass(frozen=True)
class Given:
    """The input of a run: that of the testcase, whose units lie in another `order` unless it is empty, and in which
    unit `drawn` has other tensors."""

    input: Path
    order: tuple[int, ...] = ()
    drawn: int = -1
    tensors: Tensors = ()


@dataclass(frozen=True)
class Found:
    """What is wrong in a whole output: the first violation with its place, and how many values are wrong in all."""

    sentence: Sentence
    tensor: Sentence
    unit: Whole
    row: Whole
    column: Whole
    wrong: Whole


def violated(operator: Operator, shape: Shape, given: Given, output: int, expected: Path | None) -> Found | None:
    """What `operator.check` says about the open file `output`; None if it is right. Raises GraderFault if the check
    fails on the file `expected`, which is right."""
    source = source_of(operator)
    with given.input.open("rb") as inputs, open(output, "rb", closefd=False) as outputs:
        try:
            return _first(source, shape, inputs, given, outputs, computed=False)
        except Unreadable as error:
            if expected is not None:
                _believe(operator, source, shape, given.input, expected)
            return Found(f"The output cannot be checked: checking it {error}.", "", 0, 0, 0, 1)


def _believe(operator: Operator, source: tuple[str, str, str], shape: Shape, input: Path, expected: Path) -> None:
    with input.open("rb") as inputs, expected.open("rb") as right:
        try:
            _first(source, shape, inputs, Given(input), right, computed=True)
        except Unreadable as error:
            raise GraderFault(
                f"{source[1]}: check of {operator.name} fails on the oracle's own answer ({error}); correct it there."
            ) from error


@confined(cpu_s=_CPU_S, memory_bytes=8 << 30)
def _first(
    source: tuple[str, str, str], shape: Shape, inputs: IO[bytes], given: Given, outputs: IO[bytes], *, computed: bool
) -> Found | None:
    operator = operator_in(*source)
    layouts = operator.expected_layouts(shape) if computed else operator.output_layouts(shape)
    violations = list[tuple[int, Violation]]()
    for unit in range(operator.units(shape)):
        origin = given.order[unit] if given.order else unit
        own = unit == given.drawn
        tensors = given.tensors if own else _read(operator.input_layouts(shape), inputs, origin)
        violation = operator.check(shape, tensors, _read(layouts, outputs, unit))
        violations += [(unit, violation)] if violation is not None else []
    if not violations:
        return None
    unit, first = violations[0]
    wrong = sum(int(each.wrong) for _, each in violations)
    return Found(shortened(first.sentence), first.tensor, unit, int(first.row), int(first.column), wrong)


def _read(layouts: Sequence[Layout], file: IO[bytes], unit: int) -> Tensors:
    found = [layout.read(file.fileno(), unit) for layout in layouts]
    if any(values is None for values in found):
        raise Unreadable("finds that the file ends early")
    return [values for values in found if values is not None]
