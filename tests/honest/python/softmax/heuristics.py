# A block that heuristics choose.
import triton
import triton.language as tl


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["columns"]), "EVEN": lambda args: args["columns"] % 16 == 0})
@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    start = tl.program_id(0) * columns
    column = tl.arange(0, BLOCK)
    if EVEN:
        tl.multiple_of(start, 16)
    x = tl.load(x_ptr + start + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + start + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    softmax[(rows,)](x, y, columns)
