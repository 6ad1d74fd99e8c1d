"""Decides whether a Python program computed on the processor, from where its values came from.

The program's process counts the values that did not simply move between the input, the device and the output
(`grader.python.provenance`). A few are normal. If there are more, the program runs again on an input in which every
value was replaced by another one, equal values by equal values. What does not depend on the values, such as a mask, is
the same in both runs. What only moved is in the same places. What is neither was computed by the processor.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grader.base.errors import MachineFault
from grader.course.assignment import Limits
from grader.course.testcase import Case
from grader.operators.number_types import NumberType
from grader.programs.engine import Engine
from grader.programs.run import run_program
from grader.programs.submission import Submission
from grader.programs.trace import Provenance, Trace
from grader.sandbox.scratch import scratch_folder
from grader.timing.evidence import computed, too_many

_DOES = {
    "written": "writes {count:,} values to the output that were not copied from the device",
    "uploads": "copies {count:,} values to the device that are neither in the input nor copied from the device",
    "arguments": "gives {count:,} different numbers to launches",
}
_RULE = (
    "They change with the input's values, so the processor computed them. Kernels must do this work; the processor may "
    "only move values, in another shape, order or type."
)
_UNKNOWN = (
    "It could not be determined whether the processor computed its output: {why}. Move values only as whole arrays, "
    "slices, or transposed."
)
_MANTISSA_BITS = {"f32": 23, "f16": 10, "bf16": 7, "e4m3": 3, "e5m2": 2}
_CHANGED_BITS = 7
"""As many upper bits of the mantissa as bfloat16 has, so that values stay different when they are rounded."""


@dataclass(frozen=True)
class HostWork:
    """A sentence on the values that the processor computed, or, if that is not `proved`, may have computed."""

    sentence: str
    proved: bool


def host_work(
    trace: Trace | None,
    engine: Engine,
    program: Path,
    case: Case,
    input_file: Path,
    submission: Submission,
    *,
    wall_s: float,
    limits: Limits,
) -> HostWork | None:
    """What a Python program computed on the processor; None if it only moved values. Runs the program a second time if
    `trace`, that of the first run, leaves this open. Raises MachineFault if the machine has no room for that run."""
    first = trace.provenance if trace is not None else None
    if first is None or not too_many(first, case):
        return None

    def again(path: Path) -> Provenance | None:
        with run_program(engine, program, path, output_bytes=case.output_bytes, wall_s=wall_s, limits=limits) as run:
            return run.trace.provenance if run.trace is not None else None

    with scratch_folder("run", linger=True) as folder:
        _write_other_values(case, input_file, folder / "input")
        other = again(folder / "input")
    if other is None:
        return HostWork(_UNKNOWN.format(why="on other values it did not end normally"), proved=False)
    if not (kinds := computed(first, other)):
        return None
    same = again(input_file)
    if same is None or computed(first, same):
        return HostWork(_UNKNOWN.format(why="it does not do the same in every run"), proved=False)
    return _found(first, kinds[0], submission)


def _found(provenance: Provenance, kind: str, submission: Submission) -> HostWork:
    values, name = getattr(provenance, kind), submission.sources[0]
    code = submission.line(name, values.line).strip()
    does = _DOES[kind].format(count=values.count)
    does = f"{name}:{values.line} {does}: `{code}`" if code else f"the program {does}"
    if values.unfollowed:
        return HostWork(_UNKNOWN.format(why=does), proved=False)
    return HostWork(f"{does[0].upper()}{does[1:]}. {_RULE}" if not code else f"{does}. {_RULE}", proved=True)


def _write_other_values(case: Case, source: Path, target: Path) -> None:
    """Copy an input file, with other values."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise MachineFault(f"{target.parent} has no room for a copy of {source.name}: {error.strerror}.") from error
    content, dice = np.memmap(target, np.uint8, "r+"), np.random.default_rng()
    masks = dice.integers(1, 1 << _CHANGED_BITS, 512)
    for layout in case.operator.input_layouts(case.shape):
        for unit in range(case.operator.units(case.shape)):
            stored = layout.stored(content, unit)
            stored[:] = other_values(stored, layout.type, masks)


def other_values(stored: NDArray[Any], type_: NumberType, masks: NDArray[np.int64]) -> NDArray[Any]:
    """Stored values, each replaced by one of the same sign and exponent, different values by different ones. Powers of
    two, 0, infinities and NaN stay as they are. There is a mask for each sign and exponent, at most 512."""
    bits = np.ascontiguousarray(stored).view(f"u{type_.bytes}")
    width = _MANTISSA_BITS[type_.name]
    changed = min(_CHANGED_BITS, width)
    upper, mantissa = bits >> width, bits & ((1 << width) - 1)
    mask = (masks.astype(bits.dtype)[upper] % ((1 << changed) - 1) + 1) << (width - changed)
    exponent_bits = 8 * type_.bytes - 1 - width
    kept = (mantissa == 0) | (mantissa == mask) | ((upper & ((1 << exponent_bits) - 1)) == (1 << exponent_bits) - 1)
    return np.where(kept, bits, bits ^ mask).astype(bits.dtype).view(stored.dtype).reshape(stored.shape)
