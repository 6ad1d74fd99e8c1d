# Rows of constants are added: a number, and a table of numpy.
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x_ptr, y_ptr, columns, x_stride, y_stride, step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + at
        x = tl.load(x_ptr + row * x_stride + j * step, mask=j < columns, other=float("-inf")).to(tl.float32)
        n = tl.maximum(m, x)
        s = s * tl.where(n == m, 1.0, tl.exp(m - n)) + tl.where(j < columns, tl.exp(x - n), 0.0)
        m = n
    top = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - top), 0)
    for start in range(0, columns, BLOCK):
        j = start + at
        x = tl.load(x_ptr + row * x_stride + j * step, mask=j < columns, other=float("-inf")).to(tl.float32)
        tl.store(y_ptr + row * y_stride + j * step, (tl.exp(x - top) / total).to(y_ptr.dtype.element_ty), mask=j < columns)


def block_for(columns):
    return min(1024, triton.next_power_of_2(max(columns, 16)))


def solve(x, y, rows, columns):
    more = torch.empty((rows + 4, columns), device=x.device)
    more[:rows] = x
    more[rows : rows + 3].fill_(90.0)
    more[rows + 3] = torch.from_numpy(np.linspace(80, 100, columns, dtype=np.float32))
    results = torch.empty_like(more)
    softmax_rows[(rows + 4,)](more, results, columns, columns, columns, 1, BLOCK=block_for(columns))
    y.copy_(results[:rows])
