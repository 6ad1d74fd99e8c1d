"""Attention in half precision, in Triton.

    grader check half.py             runs the public testcases
    grader run half.py               runs the lines at the end of this file, with values that you can print

The grader calls `solve` once for each shape and notes which kernels it launches; then it launches them itself. In
`solve`, tensors have a shape, a type, strides and views, but no values: all arithmetic is your kernel's. The kernel is
yours: look for TODO; the code around it handles types, layouts and masks. As it stands, it writes nothing, which fails
every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which tiles does it load,
    what does it keep from one tile of keys to the next, and what do its masks keep out?
"""

import torch
import triton
import triton.language as tl

FLOAT8 = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
NO_LIMIT = 1 << 30


# Converts a loaded tile for tl.dot: 8-bit floats, which are loaded as uint8, become float16. KIND is "" for other types.
@triton.jit
def widened(x, KIND: tl.constexpr):
    if KIND == "e5m2":  # the upper half of a float16
        x = (x.to(tl.uint16) << 8).to(tl.float16, bitcast=True)
    elif KIND == "e4m3":  # has 4 bits of exponent, with bias 7 instead of 15, and 3 of mantissa
        bits = x.to(tl.uint16)
        x = (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True) * 256.0
    return x


# Q, K, V and O are [batch, head, row, column] with any strides, except that the column stride is 1. Query head h reads
# key head h // group. Query i sees the keys from i + keys - queries - behind to i + keys - queries + ahead, both
# included.
@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale,
    KIND: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # TODO: your kernel. A start: program (tl.program_id(0), tl.program_id(1)) takes BM queries of head tl.program_id(1)
    # % heads of batch tl.program_id(1) // heads, and goes through the keys BN at a time. DP is D rounded up to a power
    # of two, which tl.arange requires. Lengths need not be a multiple of your tile; a query that sees no key gets
    # zeros.
    pass


# q is [batch, head, query, column], o too, k and v are [batch, key head, key, column]: views of the file's tensors,
# whatever their layout there. causal is 0 or 1, window -1 or a number of keys.
def solve(q, k, v, o, scale, causal, window):
    # TODO: a grid and tiles that fit your kernel, perhaps num_warps=..., num_stages=...
    kind = FLOAT8.get(q.dtype, "")
    if kind:
        q, k, v = (x.view(torch.uint8) for x in (q, k, v))
    behind = NO_LIMIT if window < 0 else window
    ahead = 0 if causal else NO_LIMIT
    attention[(1, 1)](
        q, k, v, o, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *o.stride()[:3],
        q.shape[2], k.shape[2], q.shape[1], q.shape[1] // k.shape[1], behind, ahead, scale,
        KIND=kind, D=q.shape[3], DP=triton.next_power_of_2(q.shape[3]), BM=32, BN=32,
    )  # fmt: skip


if __name__ == "__main__":
    q, k, v = (torch.full((1, 1, 4, 16), value, dtype=torch.float16) for value in (1.0, 1.0, 2.0))
    o = torch.zeros_like(q)
    solve(q, k, v, o, 0.25, 1, -1)
    print(o)
