"""Attention in half precision and its gradient, in Triton.

    grader run half_backward.py INPUT OUTPUT
    grader check half_backward.py

This file reads INPUT, sends it to the device, calls your kernels, and writes OUTPUT. The kernels are yours: look for
TODO. The code below defines layouts and masks. As it stands, the program runs and writes zeros, which fails
every test.

Kernels with "forward" (or "fwd") in their name are timed as the forward pass, those with "backward" (or "bwd") as the
backward pass. Keep these words in the names.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program of each kernel compute? Which tiles
    does it load, and what do its masks keep out?
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros

# ----------------------------------------------------------------------------------------------------- kernels

NO_LIMIT = 1 << 30


# Q, K, V and O are [batch, head, row, column] with any strides, except that the column stride is 1. dO has O's strides,
# dQ has Q's, and so on. Query head h reads key head h // group. Query i sees the keys from i + keys - queries - behind
# to i + keys - queries + ahead, both included. DP is D rounded up to a power of two, which tl.arange requires.
#
# lse has one number for each query of each head: the logarithm of the sum of its exponentials. From lse the backward
# pass computes any probability again: p = exp(s - lse).
@triton.jit
def attention_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # TODO: your kernel. Lengths need not be a multiple of your tile; a query that sees no key gets zeros.
    pass


# dQ, dK, dV: compute S again, P = exp(S - lse), dP = dO V^T, dS = P * (dP - D) with D = dO . O of each row. dK and dV
# are sums over the heads of a group.
@triton.jit
def attention_backward(
    q_ptr, k_ptr, v_ptr, o_ptr, do_ptr, lse_ptr, dq_ptr, dk_ptr, dv_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # TODO: your kernel, or several. Where several programs add to the same values, add in float32: atomics in half
    # precision lose more than the tolerance allows.
    pass


def launch(h, q, k, v, o, do, lse, dq, dk, dv):
    # TODO: grids and tiles that fit your kernels, perhaps num_warps=..., num_stages=...
    behind = NO_LIMIT if h.window < 0 else h.window
    ahead = 0 if h.causal else NO_LIMIT
    sizes = (
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *o.stride()[:3],
        h.queries, h.keys, h.query_heads, h.query_heads // h.key_heads, behind, ahead, h.scale,
    )  # fmt: skip
    tiles = {"D": h.d, "DP": triton.next_power_of_2(h.d), "BM": 32, "BN": 32}
    attention_forward[(1, 1)](q, k, v, o, lse, *sizes, **tiles)
    attention_backward[(1, 1)](q, k, v, o, do, lse, dq, dk, dv, *sizes, **tiles)


# -------------------------------------------------------------------------------------------------------- host


@dataclass(frozen=True)
class Header:
    """The header of INPUT."""

    batches: int
    query_heads: int
    key_heads: int
    queries: int
    keys: int
    d: int
    type: int
    causal: int
    window: int
    layout: int
    scale: float

    def part_shapes(self):
        """The shapes of Q, K and V in INPUT, in order; those of their gradients in OUTPUT, too."""
        B, Hq, Hk, Nq, Nk, d = self.batches, self.query_heads, self.key_heads, self.queries, self.keys, self.d
        separate = [(B, Hq, Nq, d), (B, Hk, Nk, d), (B, Hk, Nk, d)]
        return [separate, [(B, Nq, 3, Hq, d)], [(B, Nq, Hq, d), (B, Nk, 2, Hk, d)]][self.layout]

    def query_key_value(self, parts):
        """Views of these tensors as Q, K and V, each [B, H, N, d]."""
        if self.layout == 0:
            return parts
        packed = parts[-1].transpose(0, 2)  # [3 or 2, N, B, H, d]
        rest = [packed[slot].transpose(0, 1).transpose(1, 2) for slot in range(packed.shape[0])]
        return rest if self.layout == 1 else [parts[0].transpose(1, 2), *rest]

    def output_shape(self):
        """The shape of O and of dO."""
        rows = (self.query_heads, self.queries) if self.layout == 0 else (self.queries, self.query_heads)
        return (self.batches, *rows, self.d)

    def by_head(self, output):
        """A view of O or dO as [B, H, N, d]."""
        return output.transpose(1, 2) if self.layout else output


def read(path):
    """The header and type, and the tensors on the device: those of `part_shapes`, then dO."""
    integers = np.fromfile(path, np.int32, 10).tolist()
    h = Header(*integers, scale=float(np.fromfile(path, np.float32, 1, offset=40)[0]))
    values = np.fromfile(path, np.uint16, offset=44)
    kind = "bfloat16" if h.type else "float16"
    parts = []
    for shape in [*h.part_shapes(), h.output_shape()]:
        part, values = np.split(values, [math.prod(shape)])
        parts.append(from_numpy(part.reshape(shape)).view(kind))
    return h, kind, parts


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} INPUT OUTPUT")
    h, kind, [*parts, do] = read(sys.argv[1])
    o = zeros(h.output_shape(), kind)
    gradients = [zeros(shape, kind) for shape in h.part_shapes()]
    lse = empty((h.batches, h.query_heads, h.queries))
    launch(h, *h.query_key_value(parts), h.by_head(o), h.by_head(do), lse, *h.query_key_value(gradients))
    with open(sys.argv[2], "wb") as file:
        for result in (o, *gradients):
            to_numpy(result.view("uint16")).tofile(file)


if __name__ == "__main__":
    main()
