"""Fused attention, causal and not, after Triton's sixth tutorial (FlashAttention-2's forward pass)."""

import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):
    head = tl.program_id(1) * n * D
    i = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head + i[:, None] * D + d[None, :], mask=i[:, None] < n, other=0.0)
    m = tl.full((BM,), -float("inf"), tl.float32)
    s = tl.zeros((BM,), tl.float32)
    o = tl.zeros((BM, D), tl.float32)
    last = (tl.program_id(0) + 1) * BM if CAUSAL else n
    for start in range(0, tl.minimum(last, n), BN):
        j = start + tl.arange(0, BN)
        k = tl.load(k_ptr + head + j[None, :] * D + d[:, None], mask=j[None, :] < n, other=0.0)
        v = tl.load(v_ptr + head + j[:, None] * D + d[None, :], mask=j[:, None] < n, other=0.0)
        scores = tl.dot(q, k) * scale
        seen = j[None, :] < n
        if CAUSAL:
            seen &= i[:, None] >= j[None, :]
        scores = tl.where(seen, scores, -1e30)
        new = tl.maximum(m, tl.max(scores, 1))
        p = tl.exp2(scores - new[:, None])
        rescale = tl.exp2(m - new)
        s = s * rescale + tl.sum(p, 1)
        o = o * rescale[:, None] + tl.dot(p.to(v.dtype), v)
        m = new
    tl.store(o_ptr + head + i[:, None] * D + d[None, :], o / s[:, None], mask=i[:, None] < n)


rng = np.random.default_rng(6)
heads, n, D = 2 * int((*sys.argv, 1)[1]), 100, 64
for dtype, most in (("float16", 3e-3), ("bfloat16", 2e-2)):
    for causal in (False, True):
        q, k, v = (rng.integers(-8, 8, (heads, n, D)).astype(np.float32) / 8 for _ in range(3))
        o = empty((heads, n, D), dtype)
        arguments = [from_numpy(values, dtype) for values in (q, k, v)]
        scale = 1 / D**0.5 / np.log(2)
        attention[(triton.cdiv(n, 32), heads)](*arguments, o, n, scale, CAUSAL=causal, D=D, BM=32, BN=32)
        scores = q @ k.transpose(0, 2, 1) / D**0.5
        if causal:
            scores = np.where(np.tri(n, dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(2, keepdims=True))
        right = weights / weights.sum(2, keepdims=True) @ v
        off = np.abs(to_numpy(o).astype(np.float32) - right).max()
        if not off < most:
            sys.exit(f"{dtype}, causal={causal}: off by {off}")
print("right")
