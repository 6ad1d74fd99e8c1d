"""Warm-up 1 in Triton: C = A B.

    grader run matmul.py INPUT OUTPUT
    grader check matmul.py

This file reads INPUT, sends A and B to the device, calls your kernel, and writes OUTPUT. The kernel is yours: look for
TODO. As it stands, the program runs and writes zeros, which fails every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which tiles does it load,
    and what happens where a tile extends past the edge?
"""

import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import from_numpy, to_numpy, zeros


# c = a b; a is M x K, b is K x N, all row-major.
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # TODO: your kernel. A start: program (tl.program_id(0), tl.program_id(1)) takes a BM x BN tile of C and goes
    # through K in steps of BK with tl.dot(..., input_precision="ieee"): TF32, the default, is too coarse here.
    pass


def launch_product(a, b, c, M, N, K):
    # TODO: a grid and tiles that fit your kernel, perhaps num_warps=...
    product[(1,)](a, b, c, M, N, K, BM=32, BN=32, BK=32)


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} INPUT OUTPUT")
    M, N, K = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 3))
    values = np.fromfile(sys.argv[1], np.float32, offset=12)
    a, b = values[: M * K].reshape(M, K), values[M * K :].reshape(K, N)
    c = zeros((M, N))
    launch_product(from_numpy(a), from_numpy(b), c, M, N, K)
    to_numpy(c).tofile(sys.argv[2])


main()
