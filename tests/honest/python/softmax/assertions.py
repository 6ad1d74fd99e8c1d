# Assertions in the kernel, checked when it is compiled and when it runs.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit(debug=True)
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 1, "a block has elements")
    tl.static_print("BLOCK", BLOCK)
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    tl.device_assert(columns <= BLOCK, "a row fits into a block")
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    total = tl.sum(weights, 0)
    tl.device_assert(total > 0, "there is a weight")
    tl.store(y_ptr + row * columns + column, weights / total, mask=column < columns)


rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
x = from_numpy(np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns))
y = empty((rows, columns))
assert rows > 0 and columns > 0, "an empty matrix"
softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
to_numpy(y).tofile(sys.argv[2])
