# Hints on caches and on alignment.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    inside = column < columns
    first = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"), cache_modifier=".cg")
    largest = tl.max(first, 0)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"), eviction_policy="evict_first")
    weights = tl.exp(x - largest)
    tl.store(y_ptr + row * columns + column, weights, mask=inside, eviction_policy="evict_last")
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=inside, cache_modifier=".cs")


rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
x = from_numpy(np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns))
y = empty((rows, columns))
softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
to_numpy(y).tofile(sys.argv[2])
