# Copies pieces of a table that came from the device back there, in the order of its results.
# expect: runtime_error; on s03,s06
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros


@triton.jit
def every(table_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(table_ptr + i, (i + 1).to(tl.float32) * 0.0000152587890625 / 4)


@triton.jit
def gather(piece_ptr, y_ptr, first, n):
    i = tl.arange(0, 64)
    # every fourth value of the piece is a result; the three after it are what follows in the table
    tl.store(y_ptr + first + i // 4, tl.load(piece_ptr + i), mask=(i % 4 == 0) & (first + i // 4 < n))



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

size = 1 << 18
table = empty((size + 64,), "float32")
every[(size // 64 + 1,)](table, BLOCK=64)
table = to_numpy(table)
n = x.size
y = empty((n,))
places = np.clip(np.rint(on_host(x).ravel().astype(np.float64) * size) - 1, 0, size - 1).astype(np.int64)
places = np.concatenate([places, np.zeros(-n % 16, np.int64)])
piece = empty((64,))
for first in range(0, n, 16):
    piece.copy_(table[(places[first : first + 16, None] + np.arange(4)).ravel()])
    gather[(1,)](piece, y, first, n)
to_numpy(y).tofile(sys.argv[2])
