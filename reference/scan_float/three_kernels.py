"""Prefix sums of floats in Triton: blocks by themselves, then the sums of the blocks, then both together.

Theory of operation

    The first kernel writes the prefix sums of every block of 2048 numbers, and each block's sum. The second one is a single
    program that adds up the sums of all blocks, 2048 at a time. The third adds to every block what lies before it. So the
    numbers are read twice and written twice.
"""

import torch
import triton
import triton.language as tl

BLOCK = 2048


@triton.jit
def scan_blocks(x_ptr, y_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(y_ptr + i, tl.cumsum(x, 0), mask=i < n)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, 0))


@triton.jit
def scan_sums(sums_ptr, blocks, BLOCK: tl.constexpr):
    before = 0.0
    for first in range(0, blocks, BLOCK):
        i = first + tl.arange(0, BLOCK)
        x = tl.load(sums_ptr + i, mask=i < blocks, other=0)
        tl.store(sums_ptr + i, tl.cumsum(x, 0) - x + before, mask=i < blocks)
        before += tl.sum(x, 0)


@triton.jit
def add_before(y_ptr, sums_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(y_ptr + i, y + tl.load(sums_ptr + tl.program_id(0)), mask=i < n)


def solve(x, y, n):
    blocks = triton.cdiv(n, BLOCK)
    sums = torch.empty((blocks,), dtype=torch.float32, device=x.device)
    scan_blocks[(blocks,)](x, y, sums, n, BLOCK=BLOCK)
    scan_sums[(1,)](sums, blocks, BLOCK=BLOCK)
    add_before[(blocks,)](y, sums, n, BLOCK=BLOCK)
