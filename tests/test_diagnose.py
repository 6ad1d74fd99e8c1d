"""Wrong kernels in numpy, float32 like a GPU's, and what a student is told about each."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grader.checking.causes import overflown
from grader.checking.check import check_output
from grader.checking.diagnose import diagnose
from grader.checking.samples import Sample
from grader.course.assignment import load_assignment
from grader.course.catalogue import TestcaseFiles, generate, limits
from grader.course.seeds import public_seed
from grader.course.testcase import load_suite
from grader.operators import load_operator
from grader.operators.tolerance import Limit
from tests.support.assignments import NAMES

ATTENTION = load_operator("attention_forward")
HW4 = Path(__file__).parent.parent / "testcases" / "hw4.yaml"
B, N, D = SHAPE = (4, 256, 32)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    case = replace(load_suite(HW4).cases["s01"], shape=SHAPE)
    files = TestcaseFiles(tmp_path_factory.mktemp("case"))
    generate(case, files, public_seed("diagnose"))
    return files.input(case), files.expected(case)


@pytest.fixture
def says(case, tmp_path):
    """Writes `output(q, k, v)` (each B, N, d) as a program would and gives back what the student reads."""
    source, expected = case
    tensors = np.fromfile(source, dtype="<f4", offset=12).reshape(B, 3, N, D)
    right = np.fromfile(expected, dtype="<f4").reshape(B, N, D)

    def run(output):
        q, k, v = (tensors[:, i].copy() for i in range(3))
        got = tmp_path / "got"
        np.ascontiguousarray(output(q, k, v, right.copy()), dtype="<f4").tofile(got)
        check = check_output(ATTENTION, SHAPE, expected, got, 5e-3)
        return str(diagnose(check, ATTENTION, source, expected, got) or "") or None

    return run


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention(q, k, v, scale=D**-0.5):
    return softmax(q @ k.transpose(0, 2, 1) * np.float32(scale)) @ v


def patched(right, where, value):
    right[where] = value
    return right


KERNELS = {
    "Q and K swapped": (lambda q, k, v, o: attention(k, q, v), "Q and K exchanged"),
    "K and V swapped": (lambda q, k, v, o: attention(q, v, k), "K and V exchanged"),
    "K read column by column": (
        lambda q, k, v, o: attention(q, k.reshape(B, D, N).transpose(0, 2, 1), v),
        "K is read with rows and columns exchanged",
    ),
    "l once for each column": (lambda q, k, v, o: o / D, "O is 0.03125 times what it should be"),
    "all infinite": (lambda q, k, v, o: o * np.inf, "32768 of the 32768 wrong values are NaN or infinite"),
    "all batches at the first one's place": (
        lambda q, k, v, o: np.concatenate([o[-1:], 0 * o[1:]]),
        "row 0, column 0 of unit 3 is stored as row 0, column 0 of unit 0",
    ),
    "all zero": (lambda q, k, v, o: 0 * o, "exactly 0: either this part of the output is never written"),
    "one NaN": (lambda q, k, v, o: patched(o, (2, 5, 6), np.nan), "only batch 2 of 4 is wrong"),
    "batch 0 only": (
        lambda q, k, v, o: patched(o, slice(1, None), 0),
        "only batch 0 is right, all batches after the first are wrong",
    ),
    "batch 0 everywhere": (
        lambda q, k, v, o: np.broadcast_to(o[:1], o.shape),
        "of unit 0 is stored as row 0, column 0 of unit 1",
    ),
    "half of each tile": (
        lambda q, k, v, o: patched(o.reshape(B, N // 64, 64, D), np.s_[:, :, 32:], 0).reshape(o.shape),
        "rows 32 to 63 of every tile of 64 are wrong",
    ),
    "half of the columns": (lambda q, k, v, o: patched(o, np.s_[..., 16:], 0), "only columns 16 to 31 of 32"),
    "off by one row": (lambda q, k, v, o: np.roll(o, 1, axis=1), "is stored as row"),
    "half precision": (lambda q, k, v, o: o + 0.02 * np.sin(np.arange(D)), "close to the right ones"),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_cause_is_named(says, kernel):
    output, sentence = KERNELS[kernel]
    with np.errstate(all="ignore"):
        text = says(output)
    assert text is not None and sentence in text


def test_a_right_output_has_no_diagnosis(says):
    assert says(lambda q, k, v, o: o) is None


def test_noise_gets_no_invented_cause(says):
    noise = np.random.default_rng(3).normal(size=SHAPE)
    assert says(lambda q, k, v, o: noise) is None


def test_place_and_cause_are_both_told(says):
    text = says(lambda q, k, v, o: np.concatenate([o[:2], attention(q, v, k)[2:]]))
    assert "only batches 2 to 3 of 4 are wrong" in text and "K and V exchanged" in text


def test_a_link_put_in_place_of_the_output_is_not_followed(case, tmp_path):
    source, expected = case
    got = tmp_path / "got"
    np.zeros(B * N * D, np.float32).tofile(got)
    values = np.fromfile(got, dtype="<f4")
    values[:] = 1
    values[0] = 2
    values.tofile(got)
    check = check_output(ATTENTION, SHAPE, expected, got, 5e-3)
    got.unlink()
    got.symlink_to(expected)
    assert diagnose(check, ATTENTION, source, expected, got) is None


@pytest.mark.parametrize("name", NAMES)
def test_no_operator_makes_a_diagnosis_fail(name, tmp_path):
    rules = load_assignment(name)
    public = [case for case in load_suite(rules.testcases_file).cases.values() if not case.hidden]
    for case in sorted(public, key=lambda case: case.flops)[1:4]:
        files = TestcaseFiles(tmp_path / case.name)
        generate(case, files, public_seed("diagnose"))
        words = np.frombuffer(files.expected(case).read_bytes().ljust(4, b"\0"), dtype="<u2")
        for number, wrong in enumerate((np.roll(words, 4), words[::-1], words ^ 0x11)):
            got = tmp_path / f"got{number}"
            got.write_bytes(wrong.tobytes()[: case.output_bytes])
            check = check_output(
                case.operator, case.shape, files.expected(case), got, limits(case, files, rules.tolerance)
            )
            diagnose(check, case.operator, files.input(case), files.expected(case), got)


@pytest.mark.parametrize(("bits", "type"), [(16, np.int16), (8, np.uint8)])
def test_sums_that_overflow_a_narrow_type_are_named(bits, type):
    right: Any = np.cumsum(np.arange(5000) % 90).reshape(-1, 1).astype(np.int32)
    got: Any = right.astype(type).astype(np.int32)
    rows = np.flatnonzero(got != right)
    sample = Sample(0, Limit(0.5), rows, np.arange(1), (), got, right, [], right[None])
    found = overflown([sample])
    assert found is not None and found.values == {"bits": bits}
    assert overflown([replace(sample, got=right + 7)]) is None
    assert overflown([replace(sample, got=right.astype(np.float32))]) is None
