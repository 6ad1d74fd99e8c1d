# B transposed by a kernel of its own, and tiles transposed in the product.
import torch
import triton
import triton.language as tl


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


def solve(a, b, c, m, n, k):
    bt = torch.empty((n, k), dtype=b.dtype, device=b.device)
    transpose[(triton.cdiv(k, 32), triton.cdiv(n, 32))](b, bt, k, n, TILE=32)
    product[(triton.cdiv(m, 16), triton.cdiv(n, 16))](a, bt, c, m, n, k, TILE=16)
