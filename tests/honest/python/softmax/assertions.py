# Assertions in the kernel, checked when it is compiled and when it runs.
import triton
import triton.language as tl


@triton.jit(debug=True)
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK >= 1, "a block has elements")
    tl.static_print("BLOCK", BLOCK)
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    tl.device_assert(columns <= BLOCK, "a row fits into a block")
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    total = tl.sum(weights, 0)
    tl.device_assert(total > 0, "there is a weight")
    tl.store(y_ptr + row * columns + column, weights / total, mask=column < columns)


def solve(x, y, rows, columns):
    assert rows > 0 and columns > 0, "an empty matrix"
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
