"""Matrix product in Triton: tiles of C, computed in an order that reuses what the L2 cache holds.

Theory of operation

    A program computes a BM x BN tile of C and walks along K in steps of BK; the compiler keeps the tiles of A and B in
    shared memory, loads the next ones meanwhile (num_stages) and shares the tile's elements out over the threads. The
    products are float32: input_precision="ieee" keeps the tensor cores' TF32 away, which is too coarse here.

    Programs that run at the same time compute tiles of GROUP rows of tiles, so that they load the same parts of B.
    Edges load zeros, which add nothing.
"""

import triton
import triton.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr):
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    program = tl.program_id(0)
    group = program // (GROUP * tiles_n)
    size = tl.minimum(tiles_m - group * GROUP, GROUP)
    tile_m = group * GROUP + program % (GROUP * tiles_n) % size
    tile_n = program % (GROUP * tiles_n) // size
    i = (tile_m * BM + tl.arange(0, BM)).to(tl.int64)[:, None]
    j = (tile_n * BN + tl.arange(0, BN)).to(tl.int64)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None].to(tl.int64) * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(c_ptr + i * N + j, total, mask=(i < M) & (j < N))


def solve(a, b, c, m, n, k):
    small = m * n <= 256 * 256
    tile = {"BM": 16, "BN": 32, "BK": 16} if small else {"BM": 64, "BN": 64, "BK": 16}
    grid = (triton.cdiv(m, tile["BM"]) * triton.cdiv(n, tile["BN"]),)
    product[grid](a, b, c, m, n, k, **tile, GROUP=8, num_warps=2 if small else 4)
