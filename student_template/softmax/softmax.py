"""Warm-up 2 in Triton: the softmax of every row of a matrix.

    grader check softmax.py          runs the public testcases
    grader run softmax.py            runs the lines at the end of this file, with values that you can print

The grader calls `solve` once for each shape and notes which kernels it launches; then it launches them itself. In
`solve`, tensors have a shape, a type, strides and views, but no values: all arithmetic is your kernel's. The kernel is
yours: look for TODO. As it stands, it writes nothing, which fails every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which elements does it load
    and store, and what do its masks keep out?
"""

import numpy as np
import torch
import triton
import triton.language as tl


# y = softmax of every row of x; both rows x columns, row-major.
@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    # TODO: your kernel. A start: program number tl.program_id(0) takes that row, its elements are tl.arange(0, BLOCK),
    # and a mask keeps out those from `columns` on. BLOCK must be a power of two; rows can be a million columns long.
    pass


def solve(x, y, rows, columns):
    # TODO: a grid and a block that fit your kernel, perhaps num_warps=...
    softmax[(1,)](x, y, rows, columns, BLOCK=128)


if __name__ == "__main__":
    x = torch.from_numpy(np.linspace(80, 100, 24, dtype=np.float32).reshape(3, 8))
    y = torch.zeros_like(x)
    solve(x, y, *x.shape)
    print(y)
