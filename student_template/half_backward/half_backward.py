"""Attention in half precision and its gradient, in Triton.

    grader check half_backward.py    runs the public testcases

The grader calls `forward` and then `backward` once for each shape and notes which kernels they launch; then it launches
them itself. Here tensors have a shape, a type, strides and views, but no values: all arithmetic is your kernels'. They
are yours: look for TODO; the code around them handles layouts and masks. As it stands, they write nothing, which fails
every test.

Kernels with "forward" (or "fwd") in their name are timed as the forward pass, those with "backward" (or "bwd") as the
backward pass. Keep these words in the names.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program of each kernel compute? Which tiles
    does it load, and what do its masks keep out?
"""

import torch
import triton
import triton.language as tl

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


# What both kernels get after their tensors.
def sizes(q, k, v, o, scale, causal, window):
    behind = NO_LIMIT if window < 0 else window
    ahead = 0 if causal else NO_LIMIT
    return (
        *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *o.stride()[:3],
        q.shape[2], k.shape[2], q.shape[1], q.shape[1] // k.shape[1], behind, ahead, scale,
    )  # fmt: skip


def tiles(q):
    return {"D": q.shape[3], "DP": triton.next_power_of_2(q.shape[3]), "BM": 32, "BN": 32}


# q, o, do and dq are [batch, head, query, column], k, v, dk and dv are [batch, key head, key, column]: views of the
# files' tensors, whatever their layout there. causal is 0 or 1, window -1 or a number of keys.
def forward(q, k, v, o, scale, causal, window):
    # TODO: a grid and tiles that fit your kernel, perhaps num_warps=..., num_stages=...
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    after = sizes(q, k, v, o, scale, causal, window)
    attention_forward[(1, 1)](q, k, v, o, lse, *after, **tiles(q))
    return q, k, v, o, lse, after  # what `backward` gets as `saved`


def backward(saved, do, dq, dk, dv):
    q, k, v, o, lse, after = saved
    attention_backward[(1, 1)](q, k, v, o, do, lse, dq, dk, dv, *after, **tiles(q))
