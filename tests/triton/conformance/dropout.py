"""Dropout with Triton's random numbers, wrapped as in its fourth tutorial: the same seed gives the same mask."""

import sys

import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def seeded_dropout(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    kept = tl.rand(seed, i) > p
    tl.store(out_ptr + i, tl.where(kept, x / (1 - p), 0.0), mask=i < n)


def dropout(x, p, seed):
    output = torch.empty_like(x)
    assert x.is_contiguous()
    n = x.numel()
    grid = lambda meta: (triton.cdiv(n, meta["BLOCK"]),)  # noqa: E731
    seeded_dropout[grid](x, output, n, p, seed, BLOCK=1024)
    return output


if __name__ == "__main__":
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.full((8_000 * int((*sys.argv, 1)[1]),), 3.0, dtype=dtype)
        first, again, other = (dropout(x, p=0.25, seed=seed).numpy().astype(np.float32) for seed in (7, 7, 8))
        if not np.array_equal(first, again) or np.array_equal(first, other):
            sys.exit(f"{dtype}: the mask does not depend on the seed alone")
        if set(np.unique(first)) != {0.0, 4.0} or not 0.22 < (first == 0).mean() < 0.28:
            sys.exit(f"{dtype}: {np.unique(first)}, {(first == 0).mean():.3f} dropped")
    print("right")
