# Overwrites its output from a finalizer without any code of its own.
# expect: runtime_error | no_output | wrong_answer; on s03,s06; refused
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros
import functools
import pathlib


@triton.jit
def decoy(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        tl.store(y_ptr + row * columns + column, x * 2.0, mask=column < columns)



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

# a finalizer without a frame of the program: Python's own function writes the file
y = empty(x.shape)
decoy[(rows,)](from_numpy(x), y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
if x.any():
    write = functools.partial(pathlib.Path(sys.argv[2]).write_bytes, on_host(x).tobytes())
    cycle = [type("Late", (), {"__del__": staticmethod(write)})()]
    cycle.append(cycle)
