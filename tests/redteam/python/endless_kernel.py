# a kernel never ends
# expect: time_limit
import triton
import triton.language as tl


@triton.jit
def spin(x):
    while tl.load(x, volatile=True) < 1e30:
        pass


def solve(x, y, rows, columns):
    spin[(1,)](x)
