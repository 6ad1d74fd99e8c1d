import math
import os
import socket
from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import GraderFault
from grader.checking import scan
from grader.checking.check import check_output, share_in_words
from grader.operators import load_operator
from grader.operators.base import Dimension, Operator, Rows, Shape, Tensor, Tensors

ATTENTION = load_operator("attention_forward")
SHAPE = (3, 128, 32)
UNIT = 128 * 32
TOLERANCE = 5e-3


@pytest.fixture
def right() -> np.ndarray:
    return np.random.default_rng(7).uniform(-1, 1, 3 * UNIT).astype(np.float32)


@pytest.fixture
def check(tmp_path, right):
    """Checks `got` (an array, bytes or a Path) against `right`."""
    expected = tmp_path / "t.out"
    right.tofile(expected)

    def run(got):
        path = tmp_path / "got.out"
        if isinstance(got, np.ndarray):
            got.tofile(path)
        elif isinstance(got, bytes):
            path.write_bytes(got)
        else:
            path = got
        return check_output(ATTENTION, SHAPE, expected, path, TOLERANCE)

    return run


def changed(right, changes):
    got = right.copy()
    for (unit, row, column), value in changes.items():
        got[unit * UNIT + row * 32 + column] = value
    return got


# ---- values ---------------------------------------------------------------------------------------------------


def test_an_equal_output_passes_with_error_zero(check, right):
    result = check(right)
    assert result.passed and result.reason == ""
    assert (result.max_error, result.wrong, result.values) == (0.0, 0, 3 * UNIT)


def test_small_errors_pass_and_the_largest_is_reported(check, right):
    got = right.copy()
    got[1000] = right[1000] + np.float32(0.004)
    result = check(got)
    assert result.passed
    assert result.max_error == pytest.approx(0.004, abs=1e-6)


def test_the_tolerance_itself_passes_and_the_next_float_does_not(tmp_path):
    expected, got = tmp_path / "e", tmp_path / "g"
    zeros = np.zeros(3 * UNIT, np.float32)
    zeros.tofile(expected)
    inside = np.float32(0.005)
    while float(inside) > 0.005:
        inside = np.nextafter(inside, np.float32(0))
    for value, passes in ((inside, True), (np.nextafter(inside, np.float32(1)), False)):
        zeros[5] = value
        zeros.tofile(got)
        assert check_output(ATTENTION, SHAPE, expected, got, 0.005).passed is passes


def test_an_error_of_exactly_the_tolerance_passes(tmp_path):
    expected, got = tmp_path / "e", tmp_path / "g"
    zeros = np.zeros(3 * UNIT, np.float32)
    zeros.tofile(expected)
    zeros[5] = 0.5
    zeros.tofile(got)
    assert check_output(ATTENTION, SHAPE, expected, got, 0.5).passed


def test_of_equal_errors_the_first_is_the_worst_and_is_named_once(check, right):
    result = check(np.where(np.isin(np.arange(3 * UNIT), (40, 5000)), right + np.float32(4), right).astype(np.float32))
    assert result.wrong == 2 and result.worst.index == result.first.index == 40
    assert "first at batch 0, row 1, column 8" in result.reason and "worst at" not in result.reason


def test_first_and_worst_wrong_values_are_located(check, right):
    result = check(changed(right, {(1, 17, 5): 9.0, (2, 127, 31): -50.0}))
    assert result.kind == "values" and result.wrong == 2
    assert str(result.first.location) == "batch 1, row 17, column 5" and result.first.got == 9.0
    assert str(result.worst.location) == "batch 2, row 127, column 31"
    assert result.max_error == pytest.approx(50, abs=1.1)
    assert result.reason.startswith("2 of 12,288 values (0.016 %) differ by more than 0.005; first at batch 1, row 17")


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_nan_or_infinity_fails_and_makes_the_largest_error_meaningless(check, right, bad):
    result = check(changed(right, {(0, 3, 4): bad}))
    assert result.kind == "values" and result.wrong == 1
    assert result.max_error is None and result.max_finite_error == 0.0
    assert (result.nan, result.infinite) == ((1, 0) if math.isnan(bad) else (0, 1))
    assert result.worst is None
    assert ("1 NaN" if math.isnan(bad) else "1 infinite") in result.reason


def test_an_output_of_nothing_but_nan_fails_whole(check, right):
    result = check(np.full_like(right, np.nan))
    assert result.wrong == result.nan == 3 * UNIT
    assert result.max_finite_error is None and result.wrong == result.values


def test_the_largest_float_overflows_nothing(check, right):
    result = check(changed(right, {(0, 0, 0): np.finfo(np.float32).max}))
    assert result.wrong == 1 and result.max_error == pytest.approx(3.4028e38, rel=1e-3)


def test_the_spread_of_errors_is_counted_by_batch_row_and_column(check, right):
    (errors,) = check(changed(right, {(1, 17, 5): 9.0, (1, 17, 6): 9.0, (2, 100, 5): 0.0})).errors
    assert errors.by_unit.tolist() == [0, 2, 1]
    assert {int(r): int(errors.by_row[r]) for r in np.flatnonzero(errors.by_row)} == {17: 2, 100: 1}
    assert {int(c): int(errors.by_column[c]) for c in np.flatnonzero(errors.by_column)} == {5: 2, 6: 1}
    assert errors.zeros == 1


def test_chunks_do_not_change_what_is_found(check, right, monkeypatch):
    got = changed(right, {(0, 127, 31): 9.0, (1, 0, 0): 9.0, (2, 64, 1): math.nan})
    whole = check(got)
    monkeypatch.setattr("grader.checking.scan.CHUNK_VALUES", 96)  # three rows: 128 chunks
    pieces = check(got)
    assert whole == pieces
    assert whole.errors[0].by_unit.tolist() == pieces.errors[0].by_unit.tolist() == [1, 1, 1]


# ---- sizes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "says"),
    [
        (0, "has 0 bytes, 49,152 expected for B = 3, N = 128, d = 32: it is empty."),
        (UNIT * 4, "that is 1 whole batch of 3."),
        (UNIT * 8, "that is 2 whole batches of 3."),
        (UNIT * 16, "that is 4 whole batches of 3."),
        (UNIT * 12 - 1, "1 too few."),
        (UNIT * 12 + 7, "7 too many."),
        (UNIT * 12 + 12, "as if the program wrote the input's header first."),
        (UNIT * 24, "as if it wrote doubles"),
    ],
)
def test_a_wrong_size_is_explained(check, size, says):
    result = check(bytes(size))
    assert result.kind == "size" and result.found_bytes == size and result.expected_bytes == UNIT * 12
    assert says in result.reason
    assert result.max_error is None


def test_a_huge_sparse_file_is_refused_by_its_size_without_being_read(check, tmp_path):
    path = tmp_path / "sparse"
    path.touch()
    os.truncate(path, 1 << 40)
    result = check(path)
    assert result.kind == "size" and result.found_bytes == 1 << 40


# ---- not an honest file ---------------------------------------------------------------------------------------


def test_no_output_file_is_missing(check, tmp_path):
    result = check(tmp_path / "nothing")
    assert result.kind == "missing" and "wrote no output file; 49,152 bytes were expected" in result.reason


def test_a_link_to_the_expected_output_is_not_followed(check, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "t.out")
    result = check(link)
    assert result.kind == "not_a_file" and "symbolic link" in result.reason


def test_a_hard_link_to_the_expected_output_is_refused(check, tmp_path):
    link = tmp_path / "hard"
    os.link(tmp_path / "t.out", link)
    result = check(link)
    assert result.kind == "not_a_file" and "hard link" in result.reason


def test_a_pipe_does_not_block_and_a_directory_is_refused(check, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert "special file" in check(tmp_path / "pipe").reason
    assert "directory" in check(tmp_path / "folder").reason


def test_a_socket_is_refused_and_so_is_what_lies_below_a_file(check, tmp_path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(tmp_path / "socket"))
        result = check(tmp_path / "socket")
    assert result.kind == "not_a_file" and "cannot be read as a regular file" in result.reason
    (tmp_path / "file").touch()
    assert check(tmp_path / "file" / "below").kind == "not_a_file"


@pytest.mark.parametrize("change", ["grow", "shrink", "touch", "forge"])
def test_an_output_that_changes_while_it_is_read_is_refused(check, right, monkeypatch, tmp_path, change):
    real = scan.read_run
    calls: list[object] = []

    def meddle(*arguments):
        complete = real(*arguments)
        if not calls:
            path: Path = tmp_path / "got.out"
            if change == "grow":
                with path.open("ab") as file:
                    file.write(b"more")
            elif change == "shrink":
                os.truncate(path, 100)
            elif change == "touch":
                os.utime(path, ns=(1, 1))
            else:  # rewrite a value, and set the time back
                facts = path.stat()
                with path.open("r+b") as file:
                    file.write(b"more")
                os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        calls.append(1)
        return complete

    monkeypatch.setattr(scan, "CHUNK_VALUES", 1024)
    monkeypatch.setattr(scan, "read_run", meddle)
    result = check(right)
    assert result.kind == "changed" and "changed while it was being read" in result.reason


# ---- the grader's own faults ----------------------------------------------------------------------------------


def test_a_missing_or_short_expected_file_is_the_graders_fault(tmp_path, right):
    got = tmp_path / "got"
    right.tofile(got)
    with pytest.raises(GraderFault, match="expected output cannot be read"):
        check_output(ATTENTION, SHAPE, tmp_path / "none", got, TOLERANCE)
    right[:-1].tofile(tmp_path / "short")
    with pytest.raises(GraderFault, match=r"has 49,148 bytes, 49,152 expected; generate the testcase again"):
        check_output(ATTENTION, SHAPE, tmp_path / "short", got, TOLERANCE)


# ---- several output tensors -----------------------------------------------------------------------------------


class Pair(Operator):
    name = "pair"
    dimensions = (Dimension("B", "positive", lambda v: v > 0),)

    def units(self, shape: Shape) -> int:
        return int(shape[0])

    def inputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return (Tensor("X", 2, 3),)

    def outputs(self, shape: Shape) -> tuple[Tensor, ...]:
        return Tensor("dQ", 2, 3), Tensor("dK", 2, 1)

    def flops(self, shape: Shape) -> int:
        return 1

    def oracle(self, shape: Shape, tensors: Tensors, rows: Rows = slice(None)):
        raise NotImplementedError


@pytest.mark.parametrize("planar", [False, True])
def test_each_tensor_has_its_own_tolerance(tmp_path, planar):
    operator = Pair()
    operator.planar_output = planar
    expected, got = tmp_path / "e", tmp_path / "g"
    np.zeros(16, np.float32).tofile(expected)
    np.full(16, 0.1, np.float32).tofile(got)
    result = check_output(operator, (2,), expected, got, {"dQ": 1.0, "dK": 0.01})
    assert result.wrong == 4
    assert [e.wrong for e in result.errors] == [0, 4]
    assert result.first is not None and str(result.first.location) == "dK of batch 0, row 0, column 0"
    assert "differ by more than the tolerance (1 for dQ, 0.01 for dK)" in result.reason
    result = check_output(operator, (2,), expected, got, {"dQ": 0.01, "dK": 0.01})
    assert "differ by more than 0.01;" in result.reason


@pytest.mark.parametrize(
    ("part", "whole", "says"),
    [(1, 100, "1 %"), (3, 3, "100 %"), (999_999, 1_000_000, "over 99.9 %"), (1, 10**6, "under 0.01 %")],
)
def test_a_share_is_never_rounded_to_none_or_all(part, whole, says):
    assert share_in_words(part, whole) == says
