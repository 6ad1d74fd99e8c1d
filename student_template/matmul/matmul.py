"""Warm-up 1 in Triton: C = A B.

    grader check matmul.py           runs the public testcases
    grader run matmul.py             runs the lines at the end of this file, with values that you can print

The grader calls `solve` once for each shape and notes which kernels it launches; then it launches them itself. In
`solve`, tensors have a shape, a type, strides and views, but no values: all arithmetic is your kernel's. The kernel is
yours: look for TODO. As it stands, it writes nothing, which fails every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which tiles does it load,
    and what happens where a tile extends past the edge?
"""

import numpy as np
import torch
import triton
import triton.language as tl


# c = a b; a is M x K, b is K x N, all row-major.
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # TODO: your kernel. A start: program (tl.program_id(0), tl.program_id(1)) takes a BM x BN tile of C and goes
    # through K in steps of BK with tl.dot(..., input_precision="ieee"): TF32, the default, is too coarse here.
    pass


def solve(a, b, c, m, n, k):
    # TODO: a grid and tiles that fit your kernel, perhaps num_warps=...
    product[(1,)](a, b, c, m, n, k, BM=32, BN=32, BK=32)


if __name__ == "__main__":
    a = torch.from_numpy(np.arange(20, dtype=np.float32).reshape(5, 4))
    b = torch.from_numpy(np.eye(4, 3, dtype=np.float32))
    c = torch.zeros((5, 3))
    solve(a, b, c, 5, 3, 4)
    print(c)
