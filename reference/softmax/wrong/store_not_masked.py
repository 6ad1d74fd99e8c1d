# The store has no mask: it writes into the next row, and past the end of Y.
# expect: runtime_error on most: wrote 4 bytes just past the end
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row + column, weights / tl.sum(weights, 0))


rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)
y = empty(x.shape)
softmax[(rows,)](from_numpy(x), y, columns, BLOCK=triton.next_power_of_2(columns))
to_numpy(y).tofile(sys.argv[2])
