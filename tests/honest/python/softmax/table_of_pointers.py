# Every column is an array of its own, and the kernel gets a table of pointers.
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
def value(p_ptr, r, rows, columns, w, j):
    base = tl.load(p_ptr + j // w, mask=j < columns, other=0).to(tl.pointer_type(tl.float32))
    return tl.load(base + (j % w) * rows + r, mask=j < columns, other=-1e30)


@triton.jit
def by_pointer(p_ptr, y_ptr, rows, columns, w, BLOCK: tl.constexpr):
    r = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    top = -1e30
    for start in range(0, columns, BLOCK):
        top = tl.maximum(top, tl.max(value(p_ptr, r, rows, columns, w, start + at), 0))
    s = 0.0
    for start in range(0, columns, BLOCK):
        s += tl.sum(tl.exp(value(p_ptr, r, rows, columns, w, start + at) - top), 0)
    for start in range(0, columns, BLOCK):
        y = tl.exp(value(p_ptr, r, rows, columns, w, start + at) - top) / s
        tl.store(y_ptr + (start + at).to(tl.int64) * rows + r, y, mask=start + at < columns)


def main():
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)

    w = max(1, -(-columns // 40))
    held = [from_numpy(np.ascontiguousarray(x[:, a : a + w].T)) for a in range(0, columns, w)]
    pointers = np.array([t.data_ptr() for t in held], np.int64)
    y = empty((columns, rows))
    by_pointer[(rows,)](from_numpy(pointers), y, rows, columns, w, BLOCK=block_for(columns))
    to_numpy(y).T.tofile(sys.argv[2])


main()
