# A grid and shapes that are numbers of numpy, as they come from the file.
import sys
import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * columns + i, e / tl.sum(e, 0), mask=i < columns)


header = np.fromfile(sys.argv[1], np.int32, 2)
rows, columns = header
x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)
y = empty((rows * columns,)).reshape(rows, columns)
softmax[(rows,)](from_numpy(x), y, int(columns), BLOCK=triton.next_power_of_2(int(columns)))
to_numpy(y).tofile(sys.argv[2])
