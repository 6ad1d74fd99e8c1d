# The sum of the exponentials is not rescaled when the maximum grows.
# expect: wrong_answer on most: add up to | l so far must be multiplied | is the right one times a factor of its own
import torch
import triton
import triton.language as tl


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
        total = total + tl.sum(p, 1)[:, None]
        o = o * tl.exp(m - base) + tl.dot(p.to(v.dtype), v)
        m = new
    o = tl.where(total > 0, o / total, 0.0)
    column = tl.arange(0, DP)[None, :]
    to = o_ptr + batch * o_batch + head * o_head + i * o_row + column
    tl.store(to, o.to(o_ptr.dtype.element_ty), mask=(i < queries) & (column < D))


def solve(q, k, v, o, scale, causal, window):
    B, Hq, Nq, d = q.shape
    kind = {torch.float8_e4m3fn: 2, torch.float8_e5m2: 3}.get(q.dtype, 0)
    q, k, v = (each.view(torch.uint8) if kind else each for each in (q, k, v))
    strides = [stride for tensor in (q, k, v, o) for stride in tensor.stride()[:3]]
    sizes = (Hq, k.shape[1], Nq, k.shape[2], causal, window, scale)
    grid = (triton.cdiv(Nq, 32), B * Hq)
    attention[grid](q, k, v, o, *strides, *sizes, TYPE=kind, D=d, DP=triton.next_power_of_2(d))
