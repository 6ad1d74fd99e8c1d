# Sums that are split over programs, which add to C with atomics; tiles in swizzled order.
import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr, SPLIT: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, TILE), tl.cdiv(N, TILE)
    tile_m, tile_n = tl.swizzle2d(tl.program_id(0) // tiles_n, tl.program_id(0) % tiles_n, tiles_m, tiles_n, 4)
    i, j = tile_m * TILE + tl.arange(0, TILE)[:, None], tile_n * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(tl.program_id(1) * TILE, K, TILE * SPLIT):
        k = start + tl.arange(0, TILE)
        a = tl.load(a_ptr + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total += tl.dot(a, b, input_precision="ieee", out_dtype=tl.float32)
    tl.atomic_add(c_ptr + i * N + j, total, mask=(i < M) & (j < N))


def solve(a, b, c, m, n, k):
    c.zero_()
    product[(triton.cdiv(m, 16) * triton.cdiv(n, 16), 2)](a, b, c, m, n, k, TILE=16, SPLIT=2, num_warps=2)
