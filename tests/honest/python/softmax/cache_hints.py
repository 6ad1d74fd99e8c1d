# Hints on caches and on alignment.
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    inside = column < columns
    first = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"), cache_modifier=".cg")
    largest = tl.max(first, 0)
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf"), eviction_policy="evict_first")
    weights = tl.exp(x - largest)
    tl.store(y_ptr + row * columns + column, weights, mask=inside, eviction_policy="evict_last")
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=inside, cache_modifier=".cs")


def solve(x, y, rows, columns):
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
