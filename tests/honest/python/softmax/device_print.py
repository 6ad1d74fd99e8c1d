# A kernel that prints while it is looked at.
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    m = tl.max(x, 0)
    if row == 0:
        tl.device_print("maximum", m)
    weights = tl.exp(x - m)
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
