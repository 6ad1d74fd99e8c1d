"""The input of the run for comparison."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from grader.course.assignment import load_assignment
from grader.course.testcase import load_suite
from grader.grading.other_input import write_other_values


@pytest.mark.parametrize(("assignment", "name"), [("softmax", "s03"), ("half", "s10"), ("hw4", "s01")])
def test_the_other_input_has_the_same_shape_and_other_values_of_the_same_distribution(
    assignment: str, name: str, tmp_path: Path
) -> None:
    case = load_suite(load_assignment(assignment).testcases_file).cases[name]
    source, target, again = (tmp_path / each for each in ("source", "target", "again"))
    header = np.arange(case.operator.header_bytes, dtype=np.uint8)
    source.write_bytes(header.tobytes() + bytes(case.input_bytes - len(header)))
    write_other_values(case, source, target)
    write_other_values(case, target, again)
    assert target.stat().st_size == case.input_bytes and target.read_bytes()[: len(header)] == header.tobytes()
    one, other = (np.fromfile(path, np.uint8) for path in (target, again))
    layout = case.operator.input_layouts(case.shape)[0]
    values, others = (layout.type.decode(layout.stored(each, 0)) for each in (one, other))
    assert (values != others).mean() > 0.9
    assert np.isclose(values.mean(), others.mean(), atol=4 * values.std() / values.size**0.5 * 2**0.5)
    assert np.isclose(values.std(), others.std(), rtol=0.2)
