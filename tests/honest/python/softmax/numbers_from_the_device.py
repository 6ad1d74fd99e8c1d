# A row's maximum and sum come back as numbers, and go on as arguments of another kernel.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros


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


@triton.jit
def largest(x_ptr, r_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    top = -1e30
    for start in range(0, n, BLOCK):
        top = tl.maximum(top, tl.max(tl.load(x_ptr + start + at, mask=start + at < n, other=-1e30), 0))
    tl.store(r_ptr, top)


@triton.jit
def summed(x_ptr, r_ptr, n, m, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    s = 0.0
    for start in range(0, n, BLOCK):
        s += tl.sum(tl.exp(tl.load(x_ptr + start + at, mask=start + at < n, other=-1e30) - m), 0)
    tl.store(r_ptr, s)


@triton.jit
def result(x_ptr, y_ptr, n, m, s, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n) - m) / s, mask=i < n)


def main():
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)

    out = np.empty_like(x)
    many = min(rows, 40)
    for r in range(many):
        dx = from_numpy(x[r])
        one = empty((1,))
        largest[(1,)](dx, one, columns, BLOCK=block_for(columns))
        m = to_numpy(one).item()
        summed[(1,)](dx, one, columns, m, BLOCK=block_for(columns))
        s = float(to_numpy(one)[0])
        y = empty((columns,))
        result[(triton.cdiv(columns, 128),)](dx, y, columns, m, s, BLOCK=128)
        out[r] = to_numpy(y)
    if many < rows:
        y = empty((rows - many, columns))
        softmax_rows[(rows - many,)](from_numpy(x[many:]), y, columns, columns, columns, 1, BLOCK=block_for(columns))
        out[many:] = to_numpy(y)
    out.tofile(sys.argv[2])


main()
