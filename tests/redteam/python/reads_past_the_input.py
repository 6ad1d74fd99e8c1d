# a kernel looks for the answer behind its input
# expect: runtime_error | wrong_answer
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + n + i, mask=i < n), mask=i < n)


def solve(x, y, rows, columns):
    copy[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
