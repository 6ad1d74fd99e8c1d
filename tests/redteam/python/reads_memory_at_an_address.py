# host code reads memory at a tensor's address, which is made up
# expect: compile_error
import ctypes


import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def solve(x, y, rows, columns):
    values = ctypes.string_at(x.data_ptr(), 4 * x.numel())
    print("BYPASSED", values[:4])
