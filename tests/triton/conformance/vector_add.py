"""Sums of two vectors, wrapped as in Triton's first tutorial: masks at the edge, in four types."""

import sys

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    y = tl.load(y_ptr + i, mask=i < n)
    tl.store(out_ptr + i, x + y, mask=i < n)


def sum_of(x: torch.Tensor, y: torch.Tensor):
    output = torch.empty_like(x)
    assert x.is_cuda and y.is_cuda and output.device == x.device
    n = output.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731
    add[grid](x, y, output, n, BLOCK=1024)
    return output


if __name__ == "__main__":
    rng = np.random.default_rng(1)
    n = 9_999 * int((*sys.argv, 1)[1])
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int32):
        x, y = (rng.integers(-64, 64, n).astype(np.float32) for _ in range(2))
        out = sum_of(torch.from_numpy(x).to(dtype), torch.tensor(y, dtype=dtype, device="cuda"))
        if not np.array_equal(out.numpy(), x + y):
            sys.exit(f"{dtype}: wrong")
    print("right")
