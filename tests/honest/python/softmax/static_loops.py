# Loops that are unrolled, and branches on constants.
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr, PARTS: tl.constexpr, FAST: tl.constexpr):
    row = tl.program_id(0)
    m = -float("inf")
    s = 0.0
    for part in tl.static_range(PARTS):
        column = part * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-1e30)
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.where(column < columns, tl.exp(x - new), 0.0), 0)
        m = new
    for part in tl.static_range(PARTS):
        column = part * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns)
        if FAST:
            result = tl.fdiv(tl.exp(x - m), s)
        else:
            result = tl.div_rn(tl.exp(x - m), s)
        tl.store(y_ptr + row * columns + column, result, mask=column < columns)


def solve(x, y, rows, columns):
    block = min(256, triton.next_power_of_2(columns))
    softmax[(rows,)](x, y, columns, BLOCK=block, PARTS=triton.cdiv(columns, block), FAST=columns % 2 == 0)
