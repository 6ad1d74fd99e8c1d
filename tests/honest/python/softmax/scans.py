# The sum as the last of the running sums.
import triton
import triton.language as tl


@triton.jit
def larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    running = tl.associative_scan(x, 0, larger)
    m = tl.max(tl.where(column == BLOCK - 1, running, -float("inf")), 0)
    weights = tl.exp(x - m)
    total = tl.sum(tl.where(column == BLOCK - 1, tl.cumsum(weights, 0), 0.0), 0)
    tl.store(y_ptr + row * columns + column, weights / total, mask=column < columns)


def solve(x, y, rows, columns):
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
