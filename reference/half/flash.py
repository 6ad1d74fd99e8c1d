"""FlashAttention-2 in Triton for half and, forward and backward, for half_backward.

Theory of operation

    A program of `attention_forward` computes BM rows of O for one head. It walks along the keys in tiles of BN and keeps
    for each row the largest score so far, m, and the sum of its exponentials, l; when m grows, l and O are rescaled.
    S = QK^T and P stay in registers. Powers are of 2, with scale * log2(e) as a factor, since that is what the GPU has.

    Masks cost instructions in the innermost loop, so it is split. Whatever the mask, each row sees an interval of keys
    (first_seen to end_seen), and so two tiles at most at either end of a program's keys need comparisons: the first loop
    covers the tiles that every row sees whole, the second one the others. The order of tiles does not matter.

    The backward pass computes P again, from S and L = m + log2(l) of each row. With D = dO . O of each row,
    dP = dO V^T, dS = P * (dP - D): a program of `attention_backward_keys` has a tile of keys and walks along the queries
    of all heads of its group: dV += P^T dO, dK += dS^T Q. It computes S^T and dP^T, so that P^T and dS^T are in registers
    where the products want them. A program of `attention_backward_queries` has a tile of queries, and dQ += dS K. S and
    dP are computed twice so that no two programs add to the same memory, and results are the same in every run.

    Tensors are float16 or bfloat16; 8-bit floats become float16, which has all of their values, when they are loaded.
"""

import torch
import triton
import triton.language as tl

LOG2_E = 1.4426950408889634
EIGHT_BITS = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
UNSEEN = 1 << 30
"""More keys than there are: how far a query sees without a mask."""


# ------------------------------------------------------------------------------------------------ parts of kernels


@triton.jit
def widened(x, FLOAT8: tl.constexpr):
    """Values for tensor cores. e5m2 is the upper half of a float16; e4m3 has a smaller bias."""
    if FLOAT8 == "e5m2":
        x = (x.to(tl.uint16) << 8).to(tl.float16, bitcast=True)
    if FLOAT8 == "e4m3":
        bits = x.to(tl.uint16)
        x = (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True) * 256.0
    return x


@triton.jit
def load_rows(pointer, first, stride, end, N: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, CHECKED: tl.constexpr):
    """Rows first to first + N of a head as N x DP values; zeros from row `end` on, where CHECKED, and column D on."""
    row, column = tl.arange(0, N)[:, None], tl.arange(0, DP)[None, :]
    place = pointer + first.to(tl.int64) * stride + row * stride + column
    if CHECKED and D < DP:
        return tl.load(place, mask=(first + row < end) & (column < D), other=0)
    if CHECKED:
        return tl.load(place, mask=first + row < end, other=0)
    if D < DP:
        return tl.load(place, mask=column < D, other=0)
    return tl.load(place)


@triton.jit
def store_rows(pointer, first, stride, end, x, N: tl.constexpr, D: tl.constexpr, DP: tl.constexpr):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, DP)[None, :]
    place = pointer + first.to(tl.int64) * stride + row * stride + column
    tl.store(place, x.to(pointer.dtype.element_ty), mask=(first + row < end) & (column < D))


@triton.jit
def tiles_seen(first, last, before, after, count, N: tl.constexpr):
    """Of `count` columns, the rows at places first to last see each those from `before` before to `after` after it. In
    tiles of N: where the first begins, where those begin and end that every row sees whole, how many others there are."""
    begin = tl.maximum(first - before, 0) // N * N
    end = tl.maximum(tl.minimum(last + after + 1, count), begin)
    whole_begin = tl.minimum(tl.cdiv(tl.maximum(last - before, 0), N) * N, end)
    whole_end = tl.maximum(tl.minimum(first + after + 1, count) // N * N, whole_begin)
    return begin, whole_begin, whole_end, tl.cdiv(end - begin - (whole_end - whole_begin), N)


@triton.jit
def tile_number(number, begin, whole_begin, whole_end, N: tl.constexpr):
    """Where the tile begins that is number `number` of those from `begin` on, except those of the whole interval."""
    start = begin + number * N
    return tl.where(start < whole_begin, start, start - whole_begin + whole_end)


# ----------------------------------------------------------------------------------------------------- forward


@triton.jit
def forward_step(
    q, o, l, m, k_ptr, v_ptr, k_stride, v_stride, start, keys, first_seen, end_seen, scale,
    FLOAT8: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """One tile of keys."""
    k = widened(load_rows(k_ptr, start, k_stride, keys, BN, D, DP, MASKED), FLOAT8)
    s = tl.dot(q, tl.trans(k))
    if MASKED:
        j = (start + tl.arange(0, BN))[None, :]
        s = tl.where((j >= first_seen[:, None]) & (j < end_seen[:, None]), s, -float("inf"))
    new = tl.maximum(m, tl.max(s, 1) * scale)
    if MASKED:
        base = tl.where(new == -float("inf"), 0.0, new)  # a row that has seen nothing yet
    else:
        base = new
    p = tl.exp2(s * scale - base[:, None])
    rescale = tl.exp2(m - base)
    l = l * rescale + tl.sum(p, 1)
    o = o * rescale[:, None]
    v = widened(load_rows(v_ptr, start, v_stride, keys, BN, D, DP, MASKED), FLOAT8)
    o = tl.dot(p.to(v.dtype), v, o)
    return o, l, new


@triton.jit(do_not_specialize=["queries", "keys", "behind", "ahead", "heads", "group"])
def attention_forward(
    q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale,
    FLOAT8: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """O, and L for each row if lse_ptr is not None. The last programs, which a causal mask leaves the most keys, start
    first."""
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM
    batch, head = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    k_ptr += batch * k_batch + head // group * k_head
    v_ptr += batch * v_batch + head // group * v_head

    shift = keys - queries
    last = tl.minimum(first + BM, queries) - 1
    begin, whole_begin, whole_end, masked = tiles_seen(first + shift, last + shift, behind, ahead, keys, BN)
    i = first + tl.arange(0, BM)
    first_seen, end_seen = i + shift - behind, tl.minimum(i + shift + ahead + 1, keys)
    q = widened(load_rows(q_ptr + batch * q_batch + head * q_head, first, q_row, queries, BM, D, DP, True), FLOAT8)
    m = tl.full((BM,), -float("inf"), tl.float32)
    l = tl.zeros((BM,), tl.float32)
    o = tl.zeros((BM, DP), tl.float32)
    for start in range(whole_begin, whole_end, BN):
        o, l, m = forward_step(
            q, o, l, m, k_ptr, v_ptr, k_row, v_row, start, keys, first_seen, end_seen, scale, FLOAT8, D, DP, BN, False
        )
    for number in range(0, masked):
        start = tile_number(number, begin, whole_begin, whole_end, BN)
        o, l, m = forward_step(
            q, o, l, m, k_ptr, v_ptr, k_row, v_row, start, keys, first_seen, end_seen, scale, FLOAT8, D, DP, BN, True
        )
    o = o / tl.where(l > 0, l, 1.0)[:, None]
    store_rows(o_ptr + batch * o_batch + head * o_head, first, o_row, queries, o, BM, D, DP)
    if lse_ptr is not None:
        tl.store(lse_ptr + tl.program_id(1).to(tl.int64) * queries + i, m + tl.log2(l), mask=i < queries)


# ---------------------------------------------------------------------------------------------------- backward


@triton.jit(do_not_specialize=["queries", "heads"])
def attention_backward_dots(
    o_ptr, do_ptr, dot_ptr, o_batch, o_head, o_row, queries, heads,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr,
):  # fmt: skip
    """D = dO . O of each row."""
    first = tl.program_id(0) * BM
    place = (tl.program_id(1) // heads).to(tl.int64) * o_batch + (tl.program_id(1) % heads).to(tl.int64) * o_head
    o = load_rows(o_ptr + place, first, o_row, queries, BM, D, DP, True).to(tl.float32)
    do = load_rows(do_ptr + place, first, o_row, queries, BM, D, DP, True).to(tl.float32)
    i = first + tl.arange(0, BM)
    tl.store(dot_ptr + tl.program_id(1).to(tl.int64) * queries + i, tl.sum(o * do, 1), mask=i < queries)


@triton.jit
def keys_step(
    k, v, dk, dv, q_ptr, do_ptr, lse_ptr, dot_ptr, q_row, o_row, start, first, queries, shift, behind, ahead, scale,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """One tile of queries."""
    i = start + tl.arange(0, BM)
    q = load_rows(q_ptr, start, q_row, queries, BM, D, DP, MASKED)
    if MASKED:
        lse = tl.load(lse_ptr + i, mask=i < queries, other=0.0)
        dot = tl.load(dot_ptr + i, mask=i < queries, other=0.0)
    else:
        lse, dot = tl.load(lse_ptr + i), tl.load(dot_ptr + i)
    p = tl.exp2(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
    if MASKED:
        distance = i[None, :] + shift - (first + tl.arange(0, BN))[:, None]
        p = tl.where((distance <= behind) & (distance >= -ahead) & (i < queries)[None, :], p, 0.0)
    do = load_rows(do_ptr, start, o_row, queries, BM, D, DP, MASKED)
    dv = tl.dot(p.to(do.dtype), do, dv)
    ds = p * (tl.dot(v, tl.trans(do)) - dot[None, :])
    dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit(do_not_specialize=["queries", "keys", "behind", "ahead", "heads", "group"])
def attention_backward_keys(
    q_ptr, k_ptr, v_ptr, do_ptr, dk_ptr, dv_ptr, lse_ptr, dot_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale, factor,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """dK and dV for BN keys of a key head. The first keys, which a causal mask leaves the most queries, start first."""
    first = tl.program_id(0) * BN
    key_heads = heads // group
    batch, key_head = (tl.program_id(1) // key_heads).to(tl.int64), (tl.program_id(1) % key_heads).to(tl.int64)
    k_place, v_place = batch * k_batch + key_head * k_head, batch * v_batch + key_head * v_head
    k = load_rows(k_ptr + k_place, first, k_row, keys, BN, D, DP, True)
    v = load_rows(v_ptr + v_place, first, v_row, keys, BN, D, DP, True)

    shift = keys - queries
    last = tl.minimum(first + BN, keys) - 1
    begin, whole_begin, whole_end, masked = tiles_seen(first - shift, last - shift, ahead, behind, queries, BM)
    dk = tl.zeros((BN, DP), tl.float32)
    dv = tl.zeros((BN, DP), tl.float32)
    for member in range(0, group):
        head = key_head * group + member
        row = (batch * heads + head) * queries
        q, do = q_ptr + batch * q_batch + head * q_head, do_ptr + batch * o_batch + head * o_head
        for start in range(whole_begin, whole_end, BM):
            dk, dv = keys_step(
                k, v, dk, dv, q, do, lse_ptr + row, dot_ptr + row, q_row, o_row,
                start, first, queries, shift, behind, ahead, scale, D, DP, BM, BN, False,
            )  # fmt: skip
        for number in range(0, masked):
            start = tile_number(number, begin, whole_begin, whole_end, BM)
            dk, dv = keys_step(
                k, v, dk, dv, q, do, lse_ptr + row, dot_ptr + row, q_row, o_row,
                start, first, queries, shift, behind, ahead, scale, D, DP, BM, BN, True,
            )  # fmt: skip
    store_rows(dk_ptr + k_place, first, k_row, keys, dk * factor, BN, D, DP)
    store_rows(dv_ptr + v_place, first, v_row, keys, dv, BN, D, DP)


@triton.jit
def queries_step(
    q, do, dq, lse, dot, k_ptr, v_ptr, k_stride, v_stride, start, keys, first_seen, end_seen, scale,
    D: tl.constexpr, DP: tl.constexpr, BN: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """One tile of keys."""
    k = load_rows(k_ptr, start, k_stride, keys, BN, D, DP, MASKED)
    v = load_rows(v_ptr, start, v_stride, keys, BN, D, DP, MASKED)
    p = tl.exp2(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
    if MASKED:
        j = (start + tl.arange(0, BN))[None, :]
        p = tl.where((j >= first_seen[:, None]) & (j < end_seen[:, None]), p, 0.0)
    ds = p * (tl.dot(do, tl.trans(v)) - dot[:, None])
    return tl.dot(ds.to(k.dtype), k, dq)


@triton.jit(do_not_specialize=["queries", "keys", "behind", "ahead", "heads", "group"])
def attention_backward_queries(
    q_ptr, k_ptr, v_ptr, do_ptr, dq_ptr, lse_ptr, dot_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale, factor,
    D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """dQ for BM queries of a head."""
    first = (tl.num_programs(0) - 1 - tl.program_id(0)) * BM
    batch, head = (tl.program_id(1) // heads).to(tl.int64), (tl.program_id(1) % heads).to(tl.int64)
    k_ptr += batch * k_batch + head // group * k_head
    v_ptr += batch * v_batch + head // group * v_head

    shift = keys - queries
    last = tl.minimum(first + BM, queries) - 1
    begin, whole_begin, whole_end, masked = tiles_seen(first + shift, last + shift, behind, ahead, keys, BN)
    i = first + tl.arange(0, BM)
    first_seen, end_seen = i + shift - behind, tl.minimum(i + shift + ahead + 1, keys)
    row = tl.program_id(1).to(tl.int64) * queries
    lse = tl.load(lse_ptr + row + i, mask=i < queries, other=0.0)
    dot = tl.load(dot_ptr + row + i, mask=i < queries, other=0.0)
    place = batch * q_batch + head * q_head
    q = load_rows(q_ptr + place, first, q_row, queries, BM, D, DP, True)
    do = load_rows(do_ptr + batch * o_batch + head * o_head, first, o_row, queries, BM, D, DP, True)
    dq = tl.zeros((BM, DP), tl.float32)
    for start in range(whole_begin, whole_end, BN):
        dq = queries_step(
            q, do, dq, lse, dot, k_ptr, v_ptr, k_row, v_row, start, keys, first_seen, end_seen, scale, D, DP, BN, False
        )
    for number in range(0, masked):
        start = tile_number(number, begin, whole_begin, whole_end, BN)
        dq = queries_step(
            q, do, dq, lse, dot, k_ptr, v_ptr, k_row, v_row, start, keys, first_seen, end_seen, scale, D, DP, BN, True
        )
    store_rows(dq_ptr + place, first, q_row, queries, dq * factor, BM, D, DP)


# -------------------------------------------------------------------------------------------------------- host

# (BM, BN, warps, stages) by DP: those that are best on an H200 (benchmarks/half_triton.py --only tune) among those that
# the 163 KiB of shared memory of an A100 have room for; larger ones gain 8 % at most there.
FORWARD = {64: (128, 64, 8, 3), 128: (64, 64, 4, 3), 256: (128, 32, 8, 3)}
BACKWARD_KEYS = {64: (64, 64, 4, 3), 128: (32, 64, 4, 3), 256: (32, 64, 8, 3)}
BACKWARD_QUERIES = {64: (64, 64, 4, 3), 128: (128, 64, 8, 3), 256: (64, 32, 4, 3)}
SHORT = (32, 32, 4, 2)
"""For few queries or keys."""


def tile(table, q, k):
    few = min(q.shape[2], k.shape[2]) <= 256
    return SHORT if few else table[min(most for most in table if most >= q.shape[3])]


def strides(*tensors):
    return [stride for tensor in tensors for stride in tensor.stride()[:3]]


def sizes(q, k, causal, window):
    """What the kernels want to know after the strides."""
    behind = UNSEEN if window < 0 else window
    return q.shape[2], k.shape[2], q.shape[1], q.shape[1] // k.shape[1], behind, 0 if causal else UNSEEN


def columns(q):
    return {"D": q.shape[3], "DP": triton.next_power_of_2(q.shape[3])}


def launch(kernel, grid, arguments, tile, **constants):
    """`grid` has the grid for a BM and a BN."""
    BM, BN, warps, stages = tile
    kernel[grid(BM, BN)](*arguments, **constants, BM=BM, BN=BN, num_warps=warps, num_stages=stages)


def attend(q, k, v, o, lse, scale, causal, window):
    """Write O and, if there is `lse`, L of each row, which the backward pass needs."""
    float8 = EIGHT_BITS.get(q.dtype, "")
    if float8:
        q, k, v = (each.view(torch.uint8) for each in (q, k, v))
    launch(
        attention_forward,
        lambda BM, BN: (triton.cdiv(q.shape[2], BM), q.shape[0] * q.shape[1]),
        (q, k, v, o, lse, *strides(q, k, v, o), *sizes(q, k, causal, window), scale * LOG2_E),
        tile(FORWARD, q, k),
        FLOAT8=float8,
        **columns(q),
    )


def gradients(q, k, v, do, o, dq, dk, dv, lse, scale, causal, window):
    """Write dQ, dK and dV."""
    batches, query_heads, queries, _ = q.shape
    _, key_heads, keys, _ = k.shape
    dots = torch.empty_like(lse)
    attention_backward_dots[(triton.cdiv(queries, 64), batches * query_heads)](
        o, do, dots, *strides(o), queries, query_heads, **columns(q), BM=64
    )
    after = (*strides(q, k, v, o), *sizes(q, k, causal, window), scale * LOG2_E, scale)
    launch(
        attention_backward_keys,
        lambda BM, BN: (triton.cdiv(keys, BN), batches * key_heads),
        (q, k, v, do, dk, dv, lse, dots, *after),
        tile(BACKWARD_KEYS, q, k),
        **columns(q),
    )
    launch(
        attention_backward_queries,
        lambda BM, BN: (triton.cdiv(queries, BM), batches * query_heads),
        (q, k, v, do, dq, lse, dots, *after),
        tile(BACKWARD_QUERIES, q, k),
        **columns(q),
    )


def solve(q, k, v, o, scale, causal, window, do=None, dq=None, dk=None, dv=None):
    if do is None:
        attend(q, k, v, o, None, scale, causal, window)
        return
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    attend(q, k, v, o, lse, scale, causal, window)
    gradients(q, k, v, do, o, dq, dk, dv, lse, scale, causal, window)
