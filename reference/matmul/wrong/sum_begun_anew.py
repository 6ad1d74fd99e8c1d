# The sum is set to 0 for every tile.
# expect: wrong_answer on most: each tile starts the sum again
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, TILE: tl.constexpr):
    i = (tl.program_id(0) * TILE + tl.arange(0, TILE))[:, None]
    j = (tl.program_id(1) * TILE + tl.arange(0, TILE))[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, TILE):
        k = start + tl.arange(0, TILE)
        a = tl.load(a_ptr + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total = tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + i * N + j, total, mask=(i < M) & (j < N))


M, N, K = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 3))
values = np.fromfile(sys.argv[1], np.float32, offset=12)
a, b, c = from_numpy(values[: M * K]), from_numpy(values[M * K :]), empty((M, N))
product[(triton.cdiv(M, 32), triton.cdiv(N, 32))](a, b, c, M, N, K, TILE=32)
to_numpy(c).tofile(sys.argv[2])
