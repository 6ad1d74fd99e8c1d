# Few programs, each of which takes every n-th row.
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=2):
        x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"))
        weights = tl.exp(x - tl.max(x, 0))
        tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=inside)


def solve(x, y, rows, columns):
    softmax[(8,)](x, y, rows, columns, BLOCK=triton.next_power_of_2(columns), num_warps=4, num_stages=2)
