# Packed tensors are read as if each head had its Q, K and V next to each other.
# expect: wrong_answer on most: packed tensors that are read as [B, N, H,
import math
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def tile(pointer, start, stride, end, TYPE: tl.constexpr, D: tl.constexpr, DP: tl.constexpr):
    row, column = start + tl.arange(0, 32)[:, None], tl.arange(0, DP)[None, :]
    x = tl.load(pointer + row * stride + column, mask=(row < end) & (column < D), other=0)
    if TYPE == 3:
        x = (x.to(tl.uint16) << 8).to(tl.float16, bitcast=True)
    if TYPE == 2:
        bits = x.to(tl.uint16)
        x = (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True) * 256.0
    return x


@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr, q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row,
    o_batch, o_head, o_row, heads, key_heads, queries, keys, causal, window, scale,
    TYPE: tl.constexpr, D: tl.constexpr, DP: tl.constexpr,
):  # fmt: skip
    first, batch, head = tl.program_id(0) * 32, tl.program_id(1) // heads, tl.program_id(1) % heads
    key_head = head // (heads // key_heads)
    q = tile(q_ptr + batch * q_batch + head * q_head, first, q_row, queries, TYPE, D, DP)
    i = first + tl.arange(0, 32)[:, None]
    place = i + keys - queries
    m = tl.full((32, 1), -float("inf"), tl.float32)
    total = tl.zeros((32, 1), tl.float32)
    o = tl.zeros((32, DP), tl.float32)
    for start in range(0, keys, 32):
        k = tile(k_ptr + batch * k_batch + key_head * k_head, start, k_row, keys, TYPE, D, DP)
        v = tile(v_ptr + batch * v_batch + key_head * v_head, start, v_row, keys, TYPE, D, DP)
        j = start + tl.arange(0, 32)[None, :]
        seen = (j < keys) & ((causal == 0) | (j <= place)) & ((window < 0) | (j >= place - window))
        s = tl.where(seen, tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        new = tl.maximum(m, tl.max(s, 1)[:, None])
        base = tl.where(new == -float("inf"), 0.0, new)
        p = tl.exp(s - base)
        total = total * tl.exp(m - base) + tl.sum(p, 1)[:, None]
        o = o * tl.exp(m - base) + tl.dot(p.to(v.dtype), v)
        m = new
    o = tl.where(total > 0, o / total, 0.0)
    column = tl.arange(0, DP)[None, :]
    to = o_ptr + batch * o_batch + head * o_head + i * o_row + column
    tl.store(to, o.to(o_ptr.dtype.element_ty), mask=(i < queries) & (column < D))


B, Hq, Hk, Nq, Nk, d, kind, causal, window, layout = np.fromfile(sys.argv[1], np.int32, 10).tolist()
scale = float(np.fromfile(sys.argv[1], np.float32, 1, offset=40)[0])
values = np.fromfile(sys.argv[1], np.uint16 if kind < 2 else np.uint8, offset=44)
separate = [(B, Hq, Nq, d), (B, Hk, Nk, d), (B, Hk, Nk, d)]
parts = []
for shape in [separate, [(B, Nq, 3, Hq, d)], [(B, Nq, Hq, d), (B, Nk, 2, Hk, d)]][layout]:
    part, values = np.split(values, [math.prod(shape)])
    parts.append(from_numpy(part.reshape(shape)).view(["float16", "bfloat16", "uint8", "uint8"][kind]))
if layout:
    packed = parts.pop()
    B_, N_, slots, H_, d_ = packed.shape
    packed = packed.reshape(B_, N_, H_, slots, d_).transpose(2, 3).transpose(0, 2)
    parts = [part.transpose(1, 2) for part in parts]
    parts += [packed[slot].transpose(0, 1).transpose(1, 2) for slot in range(packed.shape[0])]
result = empty((B, Nq, Hq, d) if layout else (B, Hq, Nq, d), "bfloat16" if kind == 1 else "float16")
tensors = [*parts, result.transpose(1, 2) if layout else result]
strides = [stride for tensor in tensors for stride in tensor.stride()[:3]]
sizes = (Hq, Hk, Nq, Nk, causal, window, scale)
attention[(triton.cdiv(Nq, 32), B * Hq)](*tensors, *strides, *sizes, TYPE=kind, D=d, DP=triton.next_power_of_2(d))
to_numpy(result.view("uint16")).tofile(sys.argv[2])
