# a plan with millions of steps
# expect: compile_error
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def solve(x, y, rows, columns):
    for _ in range(300_000):
        x.zero_()
