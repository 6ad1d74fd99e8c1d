"""Sums of two vectors, after Triton's first tutorial: masks at the edge, in four types."""

import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


rng = np.random.default_rng(1)
n = 9_999 * int((*sys.argv, 1)[1])
for dtype in ("float32", "float16", "bfloat16", "int32"):
    x, y = (rng.integers(-64, 64, n).astype(np.float32) for _ in range(2))
    out = empty((n,), dtype)
    add[(triton.cdiv(n, 1024),)](from_numpy(x, dtype), from_numpy(y, dtype), out, n, BLOCK=1024)
    if not np.array_equal(to_numpy(out), x + y):
        sys.exit(f"{dtype}: wrong")
print("right")
