"""Attention by heads: oracle against the definition row by row, the header's float, the mask."""

import math
import struct

import numpy as np
import pytest

from grader.operators import load_operator

HEADS = load_operator("attention_heads")


def head(n, d, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-1.5, 1.5, (n, d)).astype(np.float32) for _ in range(3))


def one_row(q, k, v, i, causal, scale):
    """Row i of O, with nothing clever in it."""
    seen = range(i + 1) if causal else range(len(k))
    scores = [scale * math.fsum(float(a) * float(b) for a, b in zip(q[i], k[j], strict=True)) for j in seen]
    top = max(scores)
    weights = [math.exp(score - top) for score in scores]
    return sum(w * v[j].astype(np.float64) for w, j in zip(weights, seen, strict=True)) / math.fsum(weights)


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize(("n", "d", "scale"), [(1, 16, 0.25), (7, 16, 1.0), (130, 32, -0.3), (257, 64, 0.0)])
def test_the_oracle_is_the_definition_row_by_row(n, d, scale, causal):
    tensors = head(n, d)
    q, k, v = tensors
    (got,) = HEADS.oracle((1, 1, n, d, causal, scale), tensors)
    for i in {0, n // 2, n - 1}:
        assert np.abs(got[i] - one_row(q, k, v, i, causal, scale)).max() < 1e-12


@pytest.mark.parametrize("causal", [0, 1])
def test_the_oracle_gives_chosen_rows_only(causal):
    shape, tensors = (1, 1, 300, 16, causal, 0.25), head(300, 16)
    rows = np.array([299, 0, 128, 17])
    assert np.allclose(HEADS.oracle(shape, tensors, rows)[0], HEADS.oracle(shape, tensors)[0][rows], atol=1e-13)


def test_the_header_is_five_int32_and_a_float32_and_survives_a_round_trip(tmp_path):
    shape = HEADS.canonical((2, 3, 7, 16, 1, 0.1767767))
    data = HEADS.encode_header(shape)
    assert data == struct.pack("<5if", 2, 3, 7, 16, 1, 0.1767767)
    path = tmp_path / "x.in"
    path.write_bytes(data + bytes(HEADS.input_bytes(shape) - len(data)))
    assert HEADS.read_header(path) == shape
    assert isinstance(shape[2], int) and shape[5] == float(np.float32(0.1767767))


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ((1, 1, 0, 16, 0, 0.25), "N must be from 1 to 32,768, found N = 0"),
        ((1, 1, 8, 48, 0, 0.25), "d must be 16, 32, 64 or 128, found d = 48"),
        ((1, 1, 8, 16, 2, 0.25), "causal must be 0 or 1, found causal = 2"),
        ((1, 1, 8, 16, 0, math.nan), "scale must be a finite number, found scale = nan"),
        ((1, 1, 8.5, 16, 0, 0.25), "N must be a whole number, found N = 8.5"),
        ((1024, 1024, 8, 16, 0, 0.25), "B × H must be at most 65536, found 1048576"),
    ],
)
def test_an_illegal_shape_is_refused_with_the_number_at_fault(shape, says):
    assert says in HEADS.problem(shape)


def test_a_mask_costs_half_and_a_head_is_named_by_its_batch():
    full, causal = (2, 3, 100, 64, 0, 0.125), (2, 3, 100, 64, 1, 0.125)
    assert HEADS.flops(full) == 4 * 6 * 100 * 100 * 64
    assert HEADS.flops(causal) == 4 * 6 * (100 * 101 // 2) * 64
    assert HEADS.exponentials(causal) == 6 * 5050
    assert str(HEADS.locate(full, 4 * ((4 * 100 + 7) * 64 + 5))) == "batch 1, head 1, row 7, column 5"
