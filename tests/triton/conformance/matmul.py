"""Matrix products in half precision with tensor cores, wrapped as in Triton's third tutorial, with autotune."""

import sys

import numpy as np
import torch
import triton
import triton.language as tl


@triton.autotune(
    [
        triton.Config({"BM": 64, "BN": 32, "BK": 32}, num_warps=4, num_stages=3),
        triton.Config({"BM": 32, "BN": 64, "BK": 32}, num_warps=2, num_stages=2),
    ],
    key=["M", "N", "K"],
)
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, RELU: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    i = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    j = tl.program_id(1) * BN + tl.arange(0, BN)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, tl.cdiv(K, BK)):
        k = start * BK + tl.arange(0, BK)
        a = tl.load(a_ptr + i * K + k[None, :], mask=(i < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + j, mask=(k[:, None] < K) & (j < N), other=0.0)
        total = tl.dot(a, b, total)
    if RELU:
        total = tl.where(total > 0, total, 0.01 * total)
    tl.store(c_ptr + i * N + j, total, mask=(i < M) & (j < N))


def matmul(a, b, activation=""):
    assert a.shape[1] == b.shape[0], "incompatible dimensions"
    assert a.is_contiguous(), "A must be contiguous"
    (M, K), (_, N) = a.shape, b.shape
    c = torch.empty((M, N), device=a.device, dtype=torch.float32)
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))  # noqa: E731
    product[grid](a, b, c, M, N, K, RELU=activation == "leaky_relu")
    return c


if __name__ == "__main__":
    rng = np.random.default_rng(3)
    M, N, K = 96, 80, 72 * int((*sys.argv, 1)[1])
    for dtype in (torch.float16, torch.bfloat16):
        for activation in ("", "leaky_relu"):
            a, b = (rng.integers(-8, 8, shape).astype(np.float32) / 8 for shape in ((M, K), (K, N)))
            c = matmul(torch.from_numpy(a).to(dtype), torch.from_numpy(b).to(dtype), activation).numpy()
            right = a @ b
            right = np.where(right > 0, right, 0.01 * right) if activation else right
            if not np.allclose(c, right, rtol=1e-5, atol=1e-5):
                sys.exit(f"{dtype}: off by {np.abs(c - right).max()}")
    print("right")
