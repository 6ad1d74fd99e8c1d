"""Wrong kernels in numpy, float32 like a GPU's, and what a student is told about each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from grader.checking.check import check_output
from grader.checking.diagnose import diagnose
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.seeds import public_seed
from grader.course.testcase import load_suite
from grader.operators import load_operator

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


def test_a_buffer_that_nothing_was_copied_back_into(says):
    def buffer(q, k, v, _):
        return np.stack([q, k, v], axis=1).reshape(3 * B, N, D)[:B]

    assert "begins with the input's own values" in says(buffer)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def attention(q, k, v, scale=D**-0.5):
    return softmax(q @ k.transpose(0, 2, 1) * np.float32(scale)) @ v


def online(q, k, v, tile, rescale_o=True, rescale_l=True, weight=np.exp, weight_of_l=np.exp, correction=np.exp):
    top = np.full((B, N, 1), -np.inf, np.float32)
    total = np.zeros((B, N, 1), np.float32)
    out = np.zeros_like(q)
    for first in range(0, N, tile):
        part = q @ k[:, first : first + tile].transpose(0, 2, 1) / np.float32(D**0.5)
        new = np.maximum(top, part.max(axis=2, keepdims=True))
        weights, shrink = weight(part - new), correction(top - new)
        total = total * (shrink if rescale_l else 1) + weight_of_l(part - new).sum(axis=2, keepdims=True)
        out = out * (shrink if rescale_o else 1) + weights @ v[:, first : first + tile]
        top = new
    return out / total


def merged(q, k, v, tile, keep=None, relative_to_tile=False, late=False, each_key=False, overwritten=False):
    """An online softmax with one mistake, tile after tile."""
    top, total, out = np.full((B, N, 1), -np.inf), np.zeros((B, N, 1)), np.zeros(q.shape)
    for first in range(0, N, tile):
        values = v[:, first : first + tile]
        part = q @ k[:, first : first + tile].transpose(0, 2, 1) / D**0.5
        of_tile = part.max(axis=2, keepdims=True)
        new = np.maximum(top, of_tile)
        shrink, weights = np.exp(top - new), np.exp(part - (of_tile if relative_to_tile else new))
        total = total * shrink + weights.sum(axis=2, keepdims=True)
        if late:
            out = (out + weights @ values) * shrink
        elif each_key:
            for key in range(tile):
                out = out * shrink + weights[:, :, key : key + 1] * values[:, key : key + 1]
        else:
            out = (0 if overwritten else out * shrink) + weights @ values
        top = {None: new, "last": part[:, :, -1:], "tile": of_tile}[keep]
    return out / total


def matrices(q, k, v):
    """All matrices in the order of the file."""
    return np.stack([q, k, v], axis=1).reshape(3 * B, N, D)


def sums_in_lane_0(q, k, v):
    """A warp for each row, a column for each lane, and scores summed with __shfl_down_sync alone."""
    parts = q[:, :, None, :] * k[:, None, :, :]
    for offset in (16, 8, 4, 2, 1):
        parts = parts + np.concatenate([parts[..., offset:], parts[..., -offset:]], axis=3)
    weights = np.exp(parts / D**0.5 - (parts / D**0.5).max(axis=2, keepdims=True))
    return np.einsum("bijx,bjx->bix", weights / weights.sum(axis=2, keepdims=True), v)


def divided_by(divisor):
    """The softmax's numerator over `divisor` of the weights."""

    def output(q, k, v, o):
        scores = q @ k.transpose(0, 2, 1) / D**0.5
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        return (weights / divisor(weights)) @ v

    return output


def _scaled_exp(x):
    return np.exp(x / np.float32(D**0.5))


def patched(right, where, value):
    right[where] = value
    return right


KERNELS = {
    "no scale": (lambda q, k, v, o: attention(q, k, v, 1.0), "without the scale"),
    "scale 1/d": (lambda q, k, v, o: attention(q, k, v, 1 / D), "scale 1/d"),
    "scale sqrt d": (lambda q, k, v, o: attention(q, k, v, D**0.5), "multiplied by √d"),
    "mean of V": (lambda q, k, v, o: attention(0 * q, k, v), "mean of V"),
    "Q and K swapped": (lambda q, k, v, o: attention(k, q, v), "Q and K exchanged"),
    "K and V swapped": (lambda q, k, v, o: attention(q, v, k), "K and V exchanged"),
    "not normalised": (
        lambda q, k, v, o: np.exp(q @ k.transpose(0, 2, 1) / np.float32(D**0.5)) @ v,
        "exp(scores) V without the division",
    ),
    "softmax over queries": (
        lambda q, k, v, o: softmax(k @ q.transpose(0, 2, 1) / np.float32(D**0.5)).transpose(0, 2, 1) @ v,
        "over the queries instead of over the keys",
    ),
    "last 32 keys": (lambda q, k, v, o: attention(q, k[:, :-32], v[:, :-32]), "ignores the last 32 keys"),
    "last 16 keys": (lambda q, k, v, o: attention(q, k[:, :-16], v[:, :-16]), "ignores the last 16 keys"),
    "first tile only": (lambda q, k, v, o: attention(q, k[:, :64], v[:, :64]), "over the first 64 keys only"),
    "causal": (
        lambda q, k, v, o: softmax(np.where(np.tri(N, dtype=bool), q @ k.transpose(0, 2, 1) / D**0.5, -np.inf)) @ v,
        "causal attention",
    ),
    "O not rescaled": (lambda q, k, v, o: online(q, k, v, 32, rescale_o=False), "O (the accumulated output) is not"),
    "l not rescaled": (lambda q, k, v, o: online(q, k, v, 64, rescale_l=False), "l (the running sum) is not"),
    "neither rescaled": (lambda q, k, v, o: online(q, k, v, 32, False, False), "neither O nor l is"),
    "O not rescaled in half of the columns": (
        lambda q, k, v, o: np.concatenate([o[..., :16], online(q, k, v, 32, rescale_o=False)[..., 16:]], axis=2),
        "O (the accumulated output) is not",
    ),
    "scale once more in the weights": (
        lambda q, k, v, o: online(q, k, v, 1, weight=_scaled_exp, weight_of_l=_scaled_exp),
        "have the scale 1/√d twice",
    ),
    "no scale in the correction": (
        lambda q, k, v, o: online(q, k, v, 32, correction=lambda x: np.exp(x * D**0.5)),
        "exp(m_old − m_new) does not",
    ),
    "base 2 in O alone": (
        lambda q, k, v, o: online(q, k, v, 32, weight=np.exp2),
        "the base 2 in the sum O and the base e in the sum l",
    ),
    "base 2 in the correction": (
        lambda q, k, v, o: online(q, k, v, 32, correction=np.exp2),
        "exp(m_old − m_new) has the base 2",
    ),
    "scores not reset": (
        lambda q, k, v, o: softmax(np.cumsum(q @ k.transpose(0, 2, 1), axis=2, dtype=np.float64) / D**0.5) @ v,
        "contains that of the key before",
    ),
    "last score kept as the maximum": (
        lambda q, k, v, o: merged(q, k, v, 1, keep="last"),
        "m is set to the last score",
    ),
    "maximum of the tile kept": (
        lambda q, k, v, o: merged(q, k, v, 32, keep="tile"),
        "m is set to that of the tile alone",
    ),
    "weights relative to the tile": (
        lambda q, k, v, o: merged(q, k, v, 16, relative_to_tile=True),
        "the weights in O and l are exp(s − m_tile)",
    ),
    "corrected too late": (lambda q, k, v, o: merged(q, k, v, 64, late=True), "after the new terms were added"),
    "corrected for each key": (lambda q, k, v, o: merged(q, k, v, 32, each_key=True), "for every key of the tile"),
    "O overwritten": (lambda q, k, v, o: merged(q, k, v, 32, overwritten=True), "O is overwritten by each tile"),
    "V without its batch": (lambda q, k, v, o: attention(q, k, v[:1]), "every batch uses V of batch 0"),
    "matrices in planes": (
        lambda q, k, v, o: attention(*matrices(q, k, v).reshape(3, B, N, D)),
        "all Q, then all K, then all V",
    ),
    "batches one matrix apart": (
        lambda q, k, v, o: attention(*(matrices(q, k, v)[t : t + B] for t in range(3))),
        "are N·d values apart in the input",
    ),
    "rows of K 64 apart": (
        lambda q, k, v, o: attention(q, np.concatenate([k, v], axis=1).reshape(B, N, 64)[:, :, :D], v),
        "the rows of K are 64 values apart",
    ),
    "sum in lane 0": (lambda q, k, v, o: sums_in_lane_0(q, k, v), "only lane 0 of a warp has the whole sum"),
    "l of each thread": (
        divided_by(lambda w: np.tile(w.reshape(B, N, -1, 64).sum(axis=2), N // 64)),
        "each of 64 threads divides by the sum of its own keys",
    ),
    "B and N exchanged": (
        lambda q, k, v, o: attention(*matrices(q, k, v).reshape(N, 3, B, D).transpose(1, 0, 2, 3)).reshape(B, N, D),
        "the header is B, N, d",
    ),
    "columns permuted": (
        lambda q, k, v, o: o[..., np.arange(D).reshape(2, -1).T.ravel()],
        "hold the right values of other columns",
    ),
    "l once for each column": (lambda q, k, v, o: o / D, "1 over the number of columns"),
    "all infinite": (lambda q, k, v, o: o * np.inf, "Every value is infinite or NaN"),
    "divided by l twice": (divided_by(lambda w: w.sum(axis=2, keepdims=True) ** 2), "O divided by l twice"),
    "no softmax": (
        lambda q, k, v, o: q @ k.transpose(0, 2, 1) / np.float32(D**0.5) @ v,
        "without a softmax between the two products",
    ),
    "value of the next key": (
        lambda q, k, v, o: attention(q, k, np.roll(v, -1, axis=1)),
        "multiplied by the value of the key after",
    ),
    "half of the columns in the scores": (
        lambda q, k, v, o: softmax(q[..., :16] @ k[..., :16].transpose(0, 2, 1) / np.float32(D**0.5)) @ v,
        "summed over the first half of the columns",
    ),
    "all batches at the first one's place": (
        lambda q, k, v, o: np.concatenate([o[-1:], 0 * o[1:]]),
        "goes to the place of batch 0",
    ),
    "V returned": (lambda q, k, v, o: v, "equals V"),
    "all zero": (lambda q, k, v, o: 0 * o, "exactly 0: either this part of the output is never written"),
    "values for bytes": (lambda q, k, v, o: patched(o, np.s_[:, N // 4 :], 0), "1/4 of the output of each batch"),
    "sum of one lane": (lambda q, k, v, o: patched(o, np.s_[..., 1:], np.inf), "a sum that only the first thread"),
    "right sum in one lane": (
        lambda q, k, v, o: patched(o, np.s_[..., 1:], o[..., 1:] * np.linspace(1.5, 2, N * (D - 1)).reshape(N, -1)),
        "only lane 0 of a warp",
    ),
    "keys past the end": (
        lambda q, k, v, o: attention(q, *(np.pad(each, ((0, 0), (0, 32), (0, 0))) for each in (k, v))),
        "in the last tile of 48 count as keys",
    ),
    "constant": (lambda q, k, v, o: 0 * o + 7, "is 7: the output was filled"),
    "all NaN": (lambda q, k, v, o: o * np.nan, "Every value is NaN"),
    "one NaN": (lambda q, k, v, o: patched(o, (2, 5, 6), np.nan), "only batch 2 of 4 is wrong"),
    "batch 0 only": (
        lambda q, k, v, o: patched(o, slice(1, None), 0),
        "only batch 0 is right, all batches after the first are wrong",
    ),
    "batch 0 everywhere": (lambda q, k, v, o: np.broadcast_to(o[:1], o.shape), "the output of batch 0"),
    "one batch late": (lambda q, k, v, o: np.roll(o, 1, axis=0), "batch 1 has that of batch 0"),
    "half of each tile": (
        lambda q, k, v, o: patched(o.reshape(B, N // 64, 64, D), np.s_[:, :, 32:], 0).reshape(o.shape),
        "rows 32 to 63 of every tile of 64 are wrong",
    ),
    "half of the columns": (lambda q, k, v, o: patched(o, np.s_[..., 16:], 0), "only columns 16 to 31 of 32"),
    "transposed": (lambda q, k, v, o: o.transpose(0, 2, 1), "the right one transposed"),
    "off by one row": (lambda q, k, v, o: np.roll(o, 1, axis=1), "right values of"),
    "tripled": (lambda q, k, v, o: 3 * o, "the right one times 3"),
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
    text = says(lambda q, k, v, o: np.concatenate([o[:2], attention(q, k, v, 1.0)[2:]]))
    assert "batches from 2 on are wrong" in text and "without the scale" in text


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
