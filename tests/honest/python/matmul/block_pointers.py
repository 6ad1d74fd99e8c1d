# Products of tiles, loaded through block pointers that are advanced.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, sa, sb, sc, TILE: tl.constexpr):
    i, j = tl.program_id(0) * TILE, tl.program_id(1) * TILE
    a = tl.make_block_ptr(a_ptr, (M, K), (sa, 1), (i, 0), (TILE, TILE), (1, 0))
    b = tl.make_block_ptr(b_ptr, (K, N), (sb, 1), (0, j), (TILE, TILE), (1, 0))
    total = tl.zeros((TILE, TILE), tl.float32)
    for _ in range(0, K, TILE):
        left = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        right = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(left, right, total, input_precision="ieee")
        a, b = tl.advance(a, (0, TILE)), tl.advance(b, (TILE, 0))
    c = tl.make_block_ptr(c_ptr, (M, N), (sc, 1), (i, j), (TILE, TILE), (1, 0))
    tl.store(c, total, boundary_check=(0, 1))


M, N, K = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 3))
values = np.fromfile(sys.argv[1], np.float32, offset=12)
a, b = from_numpy(values[: M * K].reshape(M, K)), from_numpy(values[M * K :].reshape(K, N))
c = empty((M, N))
product[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, c, M, N, K, a.stride(0), b.stride(0), c.stride(0), TILE=32)
to_numpy(c).tofile(sys.argv[2])
