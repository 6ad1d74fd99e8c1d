# Rows in random order, by a table that does not depend on the input.
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x_ptr, y_ptr, order_ptr, columns, BLOCK: tl.constexpr):
    row = tl.load(order_ptr + tl.program_id(0)).to(tl.int64)
    at = tl.arange(0, BLOCK)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + at
        x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=float("-inf")).to(tl.float32)
        n = tl.maximum(m, x)
        s = s * tl.where(n == m, 1.0, tl.exp(m - n)) + tl.where(j < columns, tl.exp(x - n), 0.0)
        m = n
    top = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - top), 0)
    for start in range(0, columns, BLOCK):
        j = start + at
        x = tl.load(x_ptr + row * columns + j, mask=j < columns, other=float("-inf")).to(tl.float32)
        tl.store(y_ptr + row * columns + j, (tl.exp(x - top) / total).to(y_ptr.dtype.element_ty), mask=j < columns)


def block_for(columns):
    return min(1024, triton.next_power_of_2(max(columns, 16)))


def solve(x, y, rows, columns):
    order = torch.from_numpy(np.random.default_rng(7).permutation(rows).astype(np.int32)).to(x.device)
    softmax_rows[(rows,)](x, y, order, columns, BLOCK=block_for(columns))
