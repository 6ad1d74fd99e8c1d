# Times its kernel with do_bench before it launches it.
import triton
import triton.language as tl
import triton.testing


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + start + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    def launch():
        softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))

    print(triton.testing.do_bench(launch, warmup=1, rep=1) > 0)
    launch()
