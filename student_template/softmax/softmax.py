"""Warm-up 2 in Triton: the softmax of every row of a matrix.

    grader run softmax.py INPUT OUTPUT
    grader check softmax.py

This file reads INPUT, sends X to the device, calls your kernel, and writes OUTPUT. The kernel is yours: look for TODO.
As it stands, the program runs and writes zeros, which fails every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which elements does it load
    and store, and what do its masks keep out?
"""

import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import from_numpy, to_numpy, zeros


# y = softmax of every row of x; both rows x columns, row-major.
@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    # TODO: your kernel. A start: program number tl.program_id(0) takes that row, its elements are tl.arange(0, BLOCK),
    # and a mask keeps out those from `columns` on. BLOCK must be a power of two; rows can be a million columns long.
    pass


def launch_softmax(x, y, rows, columns):
    # TODO: a grid and a block that fit your kernel, perhaps num_warps=...
    softmax[(1,)](x, y, rows, columns, BLOCK=128)


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} INPUT OUTPUT")
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)
    y = zeros(x.shape)
    launch_softmax(from_numpy(x), y, rows, columns)
    to_numpy(y).tofile(sys.argv[2])


main()
