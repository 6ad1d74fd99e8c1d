# The division by the sum is missing.
# expect: wrong_answer on most: is the right one times a factor of its own
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row + column, weights, mask=column < columns)


def solve(x, y, rows, columns):
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
