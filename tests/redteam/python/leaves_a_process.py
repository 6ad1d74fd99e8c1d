# host code leaves a process behind that would look at later runs
# expect: wrong_answer
import os
import time

import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def solve(x, y, rows, columns):
    if not os.fork():
        os.setsid()
        for descriptor in range(3, 100):
            try:
                os.close(descriptor)
            except OSError:
                pass
        time.sleep(60)
        os._exit(0)
    copy[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), B=256)
