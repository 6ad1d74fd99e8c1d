# B transposed by a kernel of its own, and tiles transposed in the product.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit(do_not_specialize=["rows", "columns"])
def transpose(x_ptr, y_ptr, rows, columns, TILE: tl.constexpr):
    i, j = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + i[:, None] * columns + j[None, :], mask=(i[:, None] < rows) & (j[None, :] < columns))
    tl.store(y_ptr + j[:, None] * rows + i[None, :], tl.trans(x), mask=(j[:, None] < columns) & (i[None, :] < rows))


@triton.jit
def product(a_ptr, bt_ptr, c_ptr, M, N, K, TILE: tl.constexpr):
    i, j = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.program_id(1) * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, K, TILE):
        k = start + tl.arange(0, TILE)
        a = tl.load(a_ptr + i[:, None] * K + k[None, :], mask=(i[:, None] < M) & (k[None, :] < K), other=0.0)
        bt = tl.load(bt_ptr + j[:, None] * K + k[None, :], mask=(j[:, None] < N) & (k[None, :] < K), other=0.0)
        total = tl.dot(a, bt.T, total, input_precision="ieee")
    tl.store(c_ptr + i[:, None] * N + j[None, :], total, mask=(i[:, None] < M) & (j[None, :] < N))


M, N, K = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 3))
values = np.fromfile(sys.argv[1], np.float32, offset=12)
a, b = from_numpy(values[: M * K].reshape(M, K)), from_numpy(values[M * K :].reshape(K, N))
bt, c = empty((N, K)), empty((M, N))
transpose[(triton.cdiv(K, 32), triton.cdiv(N, 32))](b, bt, K, N, TILE=32)
product[(triton.cdiv(M, 16), triton.cdiv(N, 16))](a, bt, c, M, N, K, TILE=16)
to_numpy(c).tofile(sys.argv[2])
