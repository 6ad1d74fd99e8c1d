import struct
from pathlib import Path

import numpy as np
import pytest

from grader.base.errors import UsageError
from grader.operators import known_operators, load_operator

ATTENTION = load_operator("attention_forward")


def definition(q, k, v):
    """The softmax of the handout, written down with nothing clever in it."""
    q, k, v = (t.astype(np.float64) for t in (q, k, v))
    scores = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


def unit(n, d, low=-3.0, high=3.0, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(low, high, (n, d)).astype(np.float32) for _ in range(3))


def header(path: Path, *numbers: int, body: int = 0) -> Path:
    path.write_bytes(struct.pack(f"<{len(numbers)}i", *numbers) + bytes(body))
    return path


@pytest.mark.parametrize(("n", "d"), [(128, 32), (256, 64), (1024, 32)])
def test_the_oracle_is_the_definition_of_attention(n, d):
    tensors = unit(n, d)
    (got,) = ATTENTION.oracle((2, n, d), tensors)
    assert got.dtype == np.float64
    assert np.abs(got - definition(*tensors)).max() < 1e-13


def test_the_oracle_stays_finite_and_right_where_unshifted_exponentials_would_overflow():
    tensors = unit(1024, 64, low=-60, high=60)
    (got,) = ATTENTION.oracle((2, 1024, 64), tensors)
    assert np.abs(got - definition(*tensors)).max() < 1e-9


def test_the_oracle_gives_chosen_rows_only():
    tensors = unit(256, 32)
    rows = np.array([3, 200, 17])
    (some,) = ATTENTION.oracle((2, 256, 32), tensors, rows)
    (block,) = ATTENTION.oracle((2, 256, 32), tensors, slice(64, 96))
    assert some.shape == (3, 32) and np.allclose(some, definition(*tensors)[rows], atol=1e-13)
    assert np.allclose(block, definition(*tensors)[64:96], atol=1e-13)


@pytest.mark.parametrize(
    ("numbers", "says"),
    [
        ((0, 128, 32), "B must be from 2 to 14,000, found B = 0"),
        ((2, -1, 32), "N must be a power of two from 128 to 32768, found N = -1"),
        ((2, 192, 32), "N must be a power of two from 128 to 32768, found N = 192"),
        ((2, 128, 48), "d must be 32 or 64, found d = 48"),
        ((14001, 128, 32), "B must be from 2 to 14,000, found B = 14001"),
    ],
)
def test_an_illegal_header_is_refused_with_the_number_at_fault(tmp_path, numbers, says):
    path = header(tmp_path / "bad.in", *numbers)
    with pytest.raises(UsageError) as caught:
        ATTENTION.read_header(path)
    assert says in str(caught.value) and str(path) in str(caught.value)


def test_a_file_shorter_than_its_header_is_refused(tmp_path):
    path = tmp_path / "short.in"
    path.write_bytes(b"\x02\x00\x00\x00")
    with pytest.raises(UsageError, match="header B N d takes 12 bytes, the file has 4"):
        ATTENTION.read_header(path)


def test_a_file_cut_short_or_too_long_is_refused_with_both_sizes(tmp_path):
    full = ATTENTION.input_bytes((2, 128, 32)) - 12
    with pytest.raises(UsageError, match=f"cut short: B = 2, N = 128, d = 32 takes {full + 12} bytes, found 112"):
        ATTENTION.read_header(header(tmp_path / "cut.in", 2, 128, 32, body=100))
    with pytest.raises(UsageError, match="too long"):
        ATTENTION.read_header(header(tmp_path / "long.in", 2, 128, 32, body=full + 1))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"gone\.in: cannot read the testcase input: No such file"):
        ATTENTION.read_header(tmp_path / "gone.in")


def test_an_unknown_operator_is_refused_with_the_known_ones():
    assert "attention_forward" in known_operators()
    with pytest.raises(UsageError, match=r"no operator 'atention_forward'.*Did you mean attention_forward"):
        load_operator("atention_forward")
