"""Z = a x + y, in Triton.

    grader check saxpy.py          runs the public testcases

The grader calls `solve` once for each shape and notes which kernels it launches; then it launches them itself. In
`solve`, tensors have a shape, a type and views, but no values: all arithmetic is your kernel's. The kernel is yours:
look for TODO. As it stands, it writes nothing, which fails every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which elements does it load
    and store, and what do its masks keep out?
"""

import triton
import triton.language as tl


# x and y have n numbers, z gets n.
@triton.jit
def saxpy(x_ptr, y_ptr, z_ptr, n, a, BLOCK: tl.constexpr):
    # TODO: your kernel
    # (tl.program_id(0), a block of numbers tl.arange(0, BLOCK) for each program, and a mask for those from n on)
    pass


def solve(x, y, z, n, a):
    # TODO: a grid and a block that fit your kernel, perhaps num_warps=...
    saxpy[(1,)](x, y, z, n, a, BLOCK=128)
