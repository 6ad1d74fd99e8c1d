"""Layer norm, forward and backward, after Triton's fifth tutorial: the weights' gradients are summed under a lock."""

import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros


@triton.jit
def forward(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0).to(tl.float32)
    mean = tl.sum(x, 0) / n
    centred = tl.where(j < n, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, 0) / n + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    w = tl.load(w_ptr + j, mask=j < n)
    b = tl.load(b_ptr + j, mask=j < n)
    tl.store(y_ptr + row * n + j, centred * rstd * w + b, mask=j < n)


@triton.jit
def backward(x_ptr, dy_ptr, w_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    j = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + j, mask=j < n, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + j, mask=j < n, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + j, mask=j < n, other=0.0).to(tl.float32)
    mean, rstd = tl.load(mean_ptr + row), tl.load(rstd_ptr + row)
    hat = tl.where(j < n, (x - mean) * rstd, 0.0)
    wdy = w * dy
    c1, c2 = tl.sum(hat * wdy, 0) / n, tl.sum(wdy, 0) / n
    tl.store(dx_ptr + row * n + j, (wdy - (hat * c1 + c2)) * rstd, mask=j < n)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(dw_ptr + j, mask=j < n) + dy * hat
    tl.store(dw_ptr + j, total, mask=j < n)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


rng = np.random.default_rng(5)
rows, n = 24 * int((*sys.argv, 1)[1]), 200
for dtype, most in (("float16", 4e-3), ("bfloat16", 3e-2)):
    x, dy = (rng.integers(-16, 16, (rows, n)).astype(np.float32) / 8 for _ in range(2))
    w, b = (rng.integers(-8, 8, n).astype(np.float32) / 8 for _ in range(2))
    X, DY, W, B = (from_numpy(values, dtype) for values in (x, dy, w, b))
    y, dx, mean, rstd = empty((rows, n), dtype), empty((rows, n), dtype), empty((rows,)), empty((rows,))
    dw, lock = zeros((n,)), zeros((1,), "int32")
    forward[(rows,)](X, y, W, B, mean, rstd, n, 1e-5, BLOCK=256)
    backward[(rows,)](X, DY, W, mean, rstd, dx, dw, lock, n, BLOCK=256)
    m, r = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
    hat = (x - m) * r
    wdy = w * dy
    right_dx = (wdy - hat * (hat * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * r
    for name, got, right in (("y", y, hat * w + b), ("dx", dx, right_dx), ("dw", dw, (dy * hat).sum(0))):
        off = np.abs(to_numpy(got).astype(np.float32) - right).max() / np.abs(right).max()
        if not off < most:
            sys.exit(f"{dtype}: {name} is off by {off}")
print("right")
