"""GPU time by phase, from kernel names; the corners that --show prints."""

from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import UsageError
from grader.checking.corners import read_corners
from grader.course.assignment import Phase, load_assignment_file
from grader.operators import load_operator
from grader.programs.trace import Trace
from grader.programs.trace.events import KernelEvent, MemsetEvent
from grader.records.record import CornerRecord
from grader.report.terminal import corner_lines
from grader.timing.phases import phase_times
from tests.support.command_line import grader
from tests.support.course import ROOT

PHASES = (Phase(name="forward", kernels="forward|fwd"), Phase(name="backward", kernels="backward|bwd"))
KERNEL = KernelEvent("", (1, 1, 1), (32, 1, 1), 32, 0, 0, 0, 7, np.array([(0, 0)]))


def trace(*kernels: tuple[str, int, int], memsets: tuple[MemsetEvent, ...] = ()) -> Trace:
    events = tuple(KERNEL._replace(name=name, times=np.array([(start, end)])) for name, start, end in kernels)
    return Trace(kernels=events, memsets=memsets)


def test_a_phase_is_the_union_of_the_kernels_with_such_a_name() -> None:
    times = phase_times(
        trace(
            ("void Attention_Forward<64>(float*)", 0, 1_000_000),
            ("attention_backward_dot(Problem)", 1_000_000, 2_000_000),
            ("my_bwd", 1_500_000, 4_000_000),
        ),
        PHASES,
    )
    assert times == {"forward": 1.0, "backward": 3.0}


def test_what_fits_no_phase_and_memsets_are_other_and_a_phase_without_kernels_is_not_measured() -> None:
    memset = MemsetEvent(4, 5_000_000, 6_000_000, 7)
    times = phase_times(
        trace(("forward", 0, 2_000_000), ("transpose", 2_000_000, 2_500_000), memsets=(memset,)), PHASES
    )
    assert times == {"forward": 2.0, "backward": None, "other": 1.5}


def test_the_first_phase_that_fits_counts() -> None:
    assert phase_times(trace(("forward_of_backward", 0, 1_000_000)), PHASES) == {"forward": 1.0, "backward": None}


def test_a_pattern_that_is_no_regular_expression_is_refused_with_its_key(tmp_path: Path) -> None:
    text = (ROOT / "assignment/backward/assignment.yaml").read_text()
    assert "kernels: forward|fwd" in text
    path = tmp_path / "assignment.yaml"
    path.write_text(text.replace("kernels: forward|fwd", "kernels: (forward"))
    with pytest.raises(UsageError, match=r"phases\[0\]\.kernels: this is not a regular expression .*'\(forward'"):
        load_assignment_file(path)


@pytest.mark.parametrize("value", ["0", "[1, 2]", "{O: -1}", "much", "{}", "true"])
def test_a_tolerance_is_a_positive_number_or_one_for_each_tensor(tmp_path: Path, value: str) -> None:
    text = (ROOT / "tests/course/assignment/attention/assignment.yaml").read_text()
    path = tmp_path / "assignment.yaml"
    path.write_text(text.replace("tolerance: 5.0e-3", f"tolerance: {value}"))
    with pytest.raises(UsageError, match=r"tolerance(\.O)?: expected"):
        load_assignment_file(path)


# ---- corners --------------------------------------------------------------------------------------------------

GRADIENT = load_operator("attention_gradient")
SHAPE = (2, 128, 32)


def test_corners_are_the_first_rows_and_columns_of_every_tensor_of_the_first_unit(tmp_path: Path) -> None:
    values = np.arange(GRADIENT.output_bytes(SHAPE) // 4, dtype="<f4")
    values.tofile(tmp_path / "expected")
    (values + 0.5).tofile(tmp_path / "got")
    corners = read_corners(GRADIENT, SHAPE, tmp_path / "expected", tmp_path / "got", 2)
    assert [corner.tensor for corner in corners] == ["O", "dQ", "dK", "dV"]
    plane = 2 * 128 * 32
    assert corners[2].expected == ((2 * plane, 2 * plane + 1), (2 * plane + 32, 2 * plane + 33))
    assert corners[2].got[1] == (2 * plane + 32.5, 2 * plane + 33.5)


@pytest.mark.parametrize("kind", ["missing", "folder", "short"])
def test_what_was_not_written_is_said_not_to_be(tmp_path: Path, kind: str) -> None:
    np.zeros(GRADIENT.output_bytes(SHAPE) // 4, dtype="<f4").tofile(tmp_path / "expected")
    got = tmp_path / "got"
    if kind == "folder":
        got.mkdir()
    if kind == "short":
        got.write_bytes(bytes(4 * 32))
    corners = read_corners(GRADIENT, SHAPE, tmp_path / "expected", got, 2)
    assert [len(corner.got) for corner in corners] == ([1, 0, 0, 0] if kind == "short" else [0, 0, 0, 0])
    assert "not written" in "".join(corner_lines("s01", corners[1]))


def test_a_corner_survives_json_with_nan_and_infinity() -> None:
    corner = CornerRecord(tensor="O", unit="batch 0", got=((float("nan"), float("inf")),), expected=((1.0, 2.0),))
    again = CornerRecord.model_validate_json(corner.model_dump_json())
    assert np.isnan(again.got[0][0]) and np.isinf(again.got[0][1])


def test_show_prints_got_beside_expected() -> None:
    program = ROOT / "tests/programs/hw4/wrong_scale.cu"
    said = grader("check", program, "--engine", "emulator", "--tests", "s01", "--show", "3")
    assert said.code == 1
    lines = said.out.splitlines()
    at = lines.index("s01: O of batch 0, first 3 rows and 3 columns: got | expected")
    for line in lines[at + 1 : at + 4]:
        got, expected = line.split("|")
        assert len(got.split()) == len(expected.split()) == 3
        assert got.split() != expected.split()
