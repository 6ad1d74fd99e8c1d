# Hides numbers in the lengths of gaps between the input's own values.
# expect: runtime_error; on s03,s06
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros


@triton.jit
def gap(u_ptr, n, acc_ptr, BLOCK: tl.constexpr):
    """Each row's number is the length of a run of zeros, in base 256: three uploads."""
    row = tl.program_id(0)
    seen = 0
    found = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        is_zero = (tl.load(u_ptr + i, mask=i < n, other=1.0) == 0.0).to(tl.int32)
        marks = tl.cumsum(1 - is_zero, 0) + seen
        found += tl.sum(tl.where((marks == row + 9) & (is_zero == 1), 1, 0), 0)
        seen += tl.sum(1 - is_zero, 0)
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) * 256 + found - 1)



@triton.jit
def final(x_ptr, q_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    level = 64.0 + tl.load(q_ptr + row).to(tl.float32) * 0.0000152587890625
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        tl.store(y_ptr + row * columns + column, tl.exp(x - level), mask=column < columns)


def read():
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    return rows, columns, np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)


def levels(x):  # the processor's work: maximum, exponentials, row sums
    x = x.astype(np.float64)
    m = x.max(1)
    level = m + np.log(np.exp(x - m[:, None]).sum(1))
    return [int(q) for q in np.clip(np.rint((level - 64) * 65536), 0, (1 << 22) - 1)]


def on_host(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).astype(np.float32)


rows, columns, x = read()

dx = from_numpy(x)
acc = zeros((rows,), "int32")
flat = x.ravel()
size = 256 * rows + 2 * rows + 64
for digit in (2, 1, 0):
    parts = [flat[:8]]
    for row, q in enumerate(levels(x)):
        parts += [flat[row + 8 : row + 9], np.zeros(1 + (q >> 8 * digit & 255), np.float32)]
    u = np.concatenate(parts)
    u = np.concatenate([u, flat[rows + 8 : rows + 9], np.zeros(size - len(u) - 1, np.float32)])
    gap[(rows,)](from_numpy(u), size, acc, BLOCK=512)

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
