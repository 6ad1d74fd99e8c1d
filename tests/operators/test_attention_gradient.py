"""The gradient of attention: against central differences, against the definition, layout."""

import numpy as np
import pytest

from grader.course.assignment import load_assignment
from grader.operators import load_operator

GRADIENT = load_operator("attention_gradient")
NAMES = ("O", "dQ", "dK", "dV")


def batch(n, d, seed=1):
    rng = np.random.default_rng(seed)
    return tuple(rng.uniform(-2, 2, (n, d)).astype(np.float32) for _ in range(4))


def attention(q, k, v):
    scores = q @ k.T / np.sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v


@pytest.mark.parametrize(("n", "d"), [(128, 32), (300, 64)])
def test_gradients_are_central_differences_of_the_loss_sum_of_do_times_o(n, d):
    tensors = batch(n, d)
    q, k, v, do = (t.astype(np.float64) for t in tensors)
    found = GRADIENT.oracle((1, n, d), tensors)
    assert np.abs(found[0] - attention(q, k, v)).max() < 1e-13
    rng = np.random.default_rng(2)
    step = 1e-5
    for which, got in enumerate(found[1:]):
        for _ in range(12):
            row, column = rng.integers(n), rng.integers(d)
            losses = []
            for sign in (1, -1):
                moved = [q.copy(), k.copy(), v.copy()]
                moved[which][row, column] += sign * step
                losses.append((do * attention(*moved)).sum())
            slope = (losses[0] - losses[1]) / (2 * step)
            assert got[row, column] == pytest.approx(slope, abs=2e-7), (NAMES[which + 1], row, column)


def test_plain_float32_is_at_least_twenty_times_within_the_tolerance_of_every_tensor():
    n, d = 512, 64
    tensors = batch(n, d)
    q, k, v, do = tensors
    scale = np.float32(1 / np.sqrt(d))
    scores = q @ k.T * scale
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    ds = p * (do @ v.T - (do * (p @ v)).sum(axis=1, keepdims=True))
    float32 = p @ v, ds @ k * scale, ds.T @ q * scale, p.T @ do
    tolerances = GRADIENT.tolerances((1, n, d), load_assignment("backward").tolerance)
    assert list(tolerances) == list(NAMES)
    for name, got, right in zip(NAMES, float32, GRADIENT.oracle((1, n, d), tensors), strict=True):
        assert got.dtype == np.float32
        assert np.abs(got - right).max() < tolerances[name] / 20, name  # type: ignore[operator]


def test_the_output_holds_all_of_o_then_all_of_dq_dk_and_dv():
    shape = (3, 128, 32)
    matrix = 128 * 32
    assert GRADIENT.output_layouts(shape)[1].offset(2) == 4 * (3 * matrix + 2 * matrix)
    assert str(GRADIENT.locate(shape, 4 * (2 * 3 * matrix + matrix + 33))) == "dK of batch 1, row 1, column 1"
