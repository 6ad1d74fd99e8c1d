"""Dropout with Triton's random numbers, after its fourth tutorial: the same seed gives the same mask."""

import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@triton.jit
def dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    kept = tl.rand(seed, i) > p
    tl.store(out_ptr + i, tl.where(kept, x / (1 - p), 0.0), mask=i < n)


def dropped(x, seed, dtype):
    out = empty(x.shape, dtype)
    dropout[(triton.cdiv(x.size, 1024),)](from_numpy(x, dtype), out, x.size, 0.25, seed, BLOCK=1024)
    return to_numpy(out).astype(np.float32)


x = np.full(8_000 * int((*sys.argv, 1)[1]), 3.0, np.float32)
for dtype in ("float16", "bfloat16"):
    first, again, other = dropped(x, 7, dtype), dropped(x, 7, dtype), dropped(x, 8, dtype)
    if not np.array_equal(first, again) or np.array_equal(first, other):
        sys.exit(f"{dtype}: the mask does not depend on the seed alone")
    if set(np.unique(first)) != {0.0, 4.0} or not 0.22 < (first == 0).mean() < 0.28:
        sys.exit(f"{dtype}: {np.unique(first)}, {(first == 0).mean():.3f} dropped")
print("right")
