# Block pointers with boundary checks.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    source = tl.make_block_ptr(x_ptr, (rows, columns), (columns, 1), (first, 0), (ROWS, BLOCK), (1, 0))
    target = tl.make_block_ptr(y_ptr, (rows, columns), (columns, 1), (first, 0), (ROWS, BLOCK), (1, 0))
    x = tl.load(source, boundary_check=(0, 1), padding_option="zero")
    x = tl.where(tl.arange(0, BLOCK)[None, :] < columns, x, -float("inf"))
    weights = tl.exp(x - tl.max(x, 1)[:, None])
    tl.store(target, weights / tl.sum(weights, 1)[:, None], boundary_check=(0, 1))


rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
x = from_numpy(np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns))
y = empty((rows, columns))
softmax[(triton.cdiv(rows, 2),)](x, y, rows, columns, ROWS=2, BLOCK=triton.next_power_of_2(columns))
to_numpy(y).tofile(sys.argv[2])
