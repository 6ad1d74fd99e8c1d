# The products are TF32, which has 10 bits of mantissa.
# expect: wrong_answer on most: A and B rounded to 10 bits
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr):
    i = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    j = (tl.program_id(1) * TILE + tl.arange(0, TILE))[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, TILE):
        k = start + tl.arange(0, TILE)
        a = tl.load(a_ptr + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="tf32")
    tl.store(c_ptr + i * N + j, total, mask=(i < M) & (j < N))


def solve(a, b, c, m, n, k):
    product[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, c, m, n, k, TILE=32)
