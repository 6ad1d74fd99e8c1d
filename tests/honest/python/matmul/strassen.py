# One level of Strassen's algorithm: copies between views cut and join the quadrants.
import torch
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, am, ak, bk, bn, cm, ADD: tl.constexpr, T: tl.constexpr):
    i = tl.program_id(0) * T + tl.arange(0, T)
    j = tl.program_id(1) * T + tl.arange(0, T)
    k = tl.arange(0, T)
    c_at = c_ptr + i[:, None] * cm + j[None, :]
    inside = (i[:, None] < M) & (j[None, :] < N)
    if ADD:
        s = tl.load(c_at, mask=inside, other=0.0)
    else:
        s = tl.zeros((T, T), tl.float32)
    for t in range(0, K, T):
        a = tl.load(a_ptr + i[:, None] * am + (t + k)[None, :] * ak, mask=(i[:, None] < M) & ((t + k)[None, :] < K), other=0.0)
        b = tl.load(b_ptr + (t + k)[:, None] * bk + j[None, :] * bn, mask=((t + k)[:, None] < K) & (j[None, :] < N), other=0.0)
        s = tl.dot(a, b, s, input_precision="ieee")
    tl.store(c_at, s, mask=inside)


def grid(M, N, T=32):
    return (triton.cdiv(M, T), triton.cdiv(N, T))


@triton.jit
def combine(x_ptr, y_ptr, z_ptr, n, sign, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=i < n) + sign * tl.load(y_ptr + i, mask=i < n), mask=i < n)


def solve(a, b, c, m, n, k):
    h = [triton.cdiv(length, 2) for length in (m, n, k)]

    def quadrants(x, r, c):
        p = torch.zeros((2 * r, 2 * c), device=x.device)
        p[: x.shape[0], : x.shape[1]] = x
        return [q.contiguous() for q in (p[:r, :c], p[:r, c:], p[r:, :c], p[r:, c:])]

    def both(x, y, sign):
        z = torch.empty_like(x)
        count = x.numel()
        combine[(triton.cdiv(count, 256),)](x, y, z, count, sign, B=256)
        return z

    def mul(x, y):
        z = torch.empty((h[0], h[1]), device=x.device)
        product[grid(h[0], h[1])](x, y, z, h[0], h[1], h[2], h[2], 1, h[1], 1, h[1], ADD=False, T=32)
        return z

    a11, a12, a21, a22 = quadrants(a, h[0], h[2])
    b11, b12, b21, b22 = quadrants(b, h[2], h[1])
    m1 = mul(both(a11, a22, 1.0), both(b11, b22, 1.0))
    m2 = mul(both(a21, a22, 1.0), b11)
    m3 = mul(a11, both(b12, b22, -1.0))
    m4 = mul(a22, both(b21, b11, -1.0))
    m5 = mul(both(a11, a12, 1.0), b22)
    m6 = mul(both(a21, a11, -1.0), both(b11, b12, 1.0))
    m7 = mul(both(a12, a22, -1.0), both(b21, b22, 1.0))
    whole = torch.empty((2 * h[0], 2 * h[1]), device=c.device)
    whole[: h[0], : h[1]] = both(both(m1, m4, 1.0), both(m7, m5, -1.0), 1.0)
    whole[: h[0], h[1] :] = both(m3, m5, 1.0)
    whole[h[0] :, : h[1]] = both(m2, m4, 1.0)
    whole[h[0] :, h[1] :] = both(both(m1, m2, -1.0), both(m3, m6, 1.0), 1.0)
    c.copy_(whole[:m, :n])
