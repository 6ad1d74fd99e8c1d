# Sums in float64, through float16 and bfloat16 arrays that are only looked at.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def softmax(x_ptr, y_ptr, h_ptr, b_ptr, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf")).to(tl.float64)
    weights = tl.exp(x - tl.max(x, 0)) * scale
    result = (weights / tl.sum(weights, 0)).to(tl.float32)
    tl.store(y_ptr + row * columns + column, result, mask=inside)
    tl.store(h_ptr + row * columns + column, result.to(tl.float16), mask=inside)
    tl.store(b_ptr + row * columns + column, result.to(tl.bfloat16), mask=inside)


rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
x = from_numpy(np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns))
y = empty((rows, columns))
h, b = empty((rows, columns), "float16"), empty((rows, columns), "bfloat16")
softmax[(rows,)](x, y, h, b, columns, 0.5, BLOCK=triton.next_power_of_2(columns))
print("rounded to", h.dtype, b.dtype, "the results are off by", max(float(abs(to_numpy(each) - to_numpy(y)).max()) for each in (h, b)))
to_numpy(y).tofile(sys.argv[2])
