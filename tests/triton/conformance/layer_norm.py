"""Layer norm as a function of autograd, as in Triton's fifth tutorial: gradients of weights are summed under a lock."""

import sys

import numpy as np
import torch
import triton
import triton.language as tl


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


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        y = torch.empty_like(x)
        rows = x.reshape(-1, x.shape[-1])
        M, N = rows.shape
        mean = torch.empty((M,), dtype=torch.float32, device=x.device)
        rstd = torch.empty((M,), dtype=torch.float32, device=x.device)
        block = min(65536 // x.element_size(), triton.next_power_of_2(N))
        forward[(M,)](rows, y, weight, bias, mean, rstd, N, eps, BLOCK=block, num_ctas=1)
        ctx.save_for_backward(x, weight, mean, rstd)
        ctx.block = block
        return y

    @staticmethod
    def backward(ctx, dy):
        x, weight, mean, rstd = ctx.saved_tensors
        lock = torch.zeros(1, dtype=torch.int32, device=weight.device)
        dw, dx = torch.zeros(weight.shape, dtype=torch.float32, device=weight.device), torch.empty_like(dy)
        rows = x.reshape(-1, x.shape[-1])
        backward[(rows.shape[0],)](x, dy, weight, mean, rstd, dx, dw, lock, rows.shape[1], BLOCK=ctx.block)
        return dx, dw, None, None


layer_norm = LayerNorm.apply

if __name__ == "__main__":
    rng = np.random.default_rng(5)
    rows, n = 24 * int((*sys.argv, 1)[1]), 200
    for dtype, most in ((torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        x, dy = (rng.integers(-16, 16, (rows, n)).astype(np.float32) / 8 for _ in range(2))
        w, b = (rng.integers(-8, 8, n).astype(np.float32) / 8 for _ in range(2))
        X, DY, W, B = (torch.tensor(values, dtype=dtype, requires_grad=True) for values in (x, dy, w, b))
        y = layer_norm(X, W, B, 1e-5)
        y.backward(DY)
        m, r = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + 1e-5)
        hat = (x - m) * r
        wdy = w * dy
        right_dx = (wdy - hat * (hat * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * r
        for name, got, right in (("y", y, hat * w + b), ("dx", X.grad, right_dx), ("dw", W.grad, (dy * hat).sum(0))):
            off = np.abs(got.numpy().astype(np.float32) - right).max() / np.abs(right).max()
            if not off < most:
                sys.exit(f"{dtype}: {name} is off by {off}")
    print("right")
