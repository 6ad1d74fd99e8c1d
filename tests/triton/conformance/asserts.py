"""Printing and asserting in kernels, a kernel that calls another function, tuples and scalars of several types."""

import sys

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def twice(x):
    return x * 2


@triton.jit(debug=True)
def kernel(out_ptr, pair, small: tl.float32, flag, N: tl.constexpr):
    tl.static_assert(N == 32, "N is 32")
    i = tl.arange(0, N)
    tl.device_assert(i < N, "i is in range")
    if tl.program_id(0) == 0:
        tl.device_print("first: ", pair[0])
    value = twice(i.to(tl.float32)) + pair[0] + pair[1] + small
    tl.store(out_ptr + i, value if flag else -value)


if __name__ == "__main__":
    out = torch.empty(32, device="cuda")
    kernel[(1,)](out, (3, 5), 0.5, True, N=32)
    if not np.array_equal(out.numpy(), 2 * np.arange(32) + 8.5):
        sys.exit(f"wrong: {out}")
    print("right")
