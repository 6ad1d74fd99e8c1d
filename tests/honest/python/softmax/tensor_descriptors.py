# Tensor descriptors, which a kernel makes and loads blocks through.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    source = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [ROWS, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [rows, columns], [columns, 1], [ROWS, BLOCK])
    m = tl.full((ROWS,), -1e30, tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + tl.arange(0, BLOCK)[None, :] < columns
        x = tl.where(inside, source.load([first, start]), -1e30)
        new = tl.maximum(m, tl.max(x, 1))
        s = s * tl.exp(m - new) + tl.sum(tl.where(inside, tl.exp(x - new[:, None]), 0.0), 1)
        m = new
    for start in range(0, columns, BLOCK):
        x = source.load([first, start])
        target.store([first, start], tl.exp(x - m[:, None]) / s[:, None])


rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
values = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)
padded = np.full((rows, triton.cdiv(columns, 4) * 4), -1e30, np.float32)  # rows begin at multiples of 16 bytes
padded[:, :columns] = values
x, y = from_numpy(padded), empty(padded.shape)
softmax[(triton.cdiv(rows, 8),)](x, y, rows, padded.shape[1], ROWS=8, BLOCK=32)
to_numpy(y)[:, :columns].copy().tofile(sys.argv[2])
