"""The sum of n numbers in Triton: blocks of sums, added up atomically.

Theory of operation

    A program adds up every 1024th block of its own, so that 1024 programs share n numbers of any count, and adds its sum
    to the result. The result is set to 0 by a kernel before: the grader's memory holds anything.
"""

import triton
import triton.language as tl

PROGRAMS, BLOCK = 1024, 4096


@triton.jit
def clear(s_ptr):
    tl.store(s_ptr, 0.0)


@triton.jit
def add_up(x_ptr, s_ptr, n, BLOCK: tl.constexpr):
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK)
        sums += tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.atomic_add(s_ptr, tl.sum(sums, 0))


def solve(x, s, n):
    clear[(1,)](s)
    add_up[(min(PROGRAMS, triton.cdiv(n, BLOCK)),)](x, s, n, BLOCK=BLOCK)
