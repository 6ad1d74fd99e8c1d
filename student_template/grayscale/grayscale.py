"""A picture in shades of grey, in Triton.

    grader check grayscale.py          runs the public testcases

The grader calls `solve` once for each shape and notes which kernels it launches; then it launches them itself. In
`solve`, tensors have a shape, a type and views, but no values: all arithmetic is your kernel's. The kernel is yours:
look for TODO. As it stands, it writes nothing, which fails every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which elements does it load
    and store, and what do its masks keep out?
"""

import triton
import triton.language as tl


# p has three bytes for each pixel, red, green and blue; g gets one.
@triton.jit
def grayscale(p_ptr, g_ptr, height, width, BLOCK: tl.constexpr):
    # TODO: your kernel
    # (a block of pixels for each program; the sums do not fit into a byte)
    pass


def solve(p, g, height, width):
    # TODO: a grid and a block that fit your kernel, perhaps num_warps=...
    grayscale[(1,)](p, g, height, width, BLOCK=128)
