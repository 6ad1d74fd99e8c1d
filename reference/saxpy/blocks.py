"""z = a x + y in Triton: a program takes a block of numbers.

Theory of operation

    Every number is read once and used once, so the memory's bandwidth is the limit. A program of 4 warps loads 1024
    numbers of each array, 16 bytes a thread at a time; a mask keeps out those from n on.
"""

import triton
import triton.language as tl


@triton.jit
def saxpy(x_ptr, y_ptr, z_ptr, n, a, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(z_ptr + i, a * x + y, mask=i < n)


def solve(x, y, z, n, a):
    saxpy[(triton.cdiv(n, 1024),)](x, y, z, n, a, BLOCK=1024)
