"""Softmax of rows in Triton: one program for each row, or for several short ones.

Theory of operation

    Where a row fits into a program's registers (up to 8192 columns), the program loads it once, and rows of up to 512
    columns come several to a program, so that it has work for its four warps. A longer row is read twice: first for its
    maximum m and the sum s of exp(x - m), both kept up to date block by block (when m grows, s is multiplied by
    exp(old - new); Milakov and Gimelshein, 2018), then for the results.
"""

import triton
import triton.language as tl

IN_REGISTERS = 8192


@triton.jit
def softmax_short(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"))
    largest = tl.max(x, 1)[:, None]
    weights = tl.exp(x - tl.where(row < rows, largest, 0.0))
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 1)[:, None], mask=inside)


@triton.jit
def softmax_long(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    m = -float("inf")
    s = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + column, mask=column < columns, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + column, mask=column < columns)
        tl.store(y_ptr + row + column, tl.exp(x - m) / s, mask=column < columns)


def solve(x, y, rows, columns):
    if columns > IN_REGISTERS:
        softmax_long[(rows,)](x, y, columns, BLOCK=4096, num_warps=8)
        return
    block = max(16, triton.next_power_of_2(columns))
    each = max(1, 512 // block)
    softmax_short[(triton.cdiv(rows, each),)](
        x, y, rows, columns, ROWS=each, BLOCK=block, num_warps=8 if block > 2048 else 4
    )
