"""Makes another input of the same shape, on which a program does the same if it only moves values."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import numpy as np

from grader.base.errors import MachineFault
from grader.course.catalogue.piece import draw_tensors
from grader.course.seeds import Seed
from grader.course.testcase import Case


def write_other_values(case: Case, source: Path, target: Path) -> None:
    """Copy an input file, with other values of the same distribution: a program cannot tell from them which input is
    the graded run's."""
    copy_input(source, target)
    operator, shape = case.operator, case.shape
    content, seed = np.memmap(target, np.uint8, "r+"), Seed("fresh", secrets.token_bytes(32))
    for unit in range(operator.units(shape)):
        tensors = draw_tensors(operator, shape, case.distribution, seed, case.identity, unit)
        for layout, values in zip(operator.input_layouts(shape), tensors, strict=True):
            stored = layout.stored(content, unit)
            stored[:] = layout.type.encode(values).reshape(stored.shape)


def copy_input(source: Path, target: Path) -> None:
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        raise MachineFault(f"{target.parent} has no room for a copy of {source.name}: {error.strerror}.") from error
