"""A picture in shades of grey in Triton: a program takes a block of pixels.

Theory of operation

    A pixel's three bytes lie next to each other, so the three loads of a program touch the same lines of memory, which
    the cache keeps. The sum is computed in 32 bits: 255 (77 + 150 + 29) does not fit into a byte.
"""

import triton
import triton.language as tl


@triton.jit
def grey(p_ptr, g_ptr, pixels, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    red = tl.load(p_ptr + 3 * i, mask=i < pixels).to(tl.int32)
    green = tl.load(p_ptr + 3 * i + 1, mask=i < pixels).to(tl.int32)
    blue = tl.load(p_ptr + 3 * i + 2, mask=i < pixels).to(tl.int32)
    tl.store(g_ptr + i, ((77 * red + 150 * green + 29 * blue + 128) >> 8).to(tl.uint8), mask=i < pixels)


def solve(p, g, height, width):
    grey[(triton.cdiv(height * width, 1024),)](p, g, height * width, BLOCK=1024)
