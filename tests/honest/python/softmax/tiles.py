# The matrix padded, and cut into tiles by copies between views.
import torch
import triton
import triton.language as tl


@triton.jit
def tiles(x_ptr, y_ptr, C):
    r = tl.arange(0, 8)[:, None]
    c = tl.arange(0, 16)[None, :]
    base = tl.program_id(0).to(tl.int64) * C * 128 + r * 16 + c
    top = tl.full((8, 16), -1e30, tl.float32)
    for t in range(0, C):
        top = tl.maximum(top, tl.load(x_ptr + base + t * 128))
    m = tl.max(top, 1)[:, None]
    s = tl.zeros((8, 16), tl.float32)
    for t in range(0, C):
        s += tl.exp(tl.load(x_ptr + base + t * 128) - m)
    l = tl.sum(s, 1)[:, None]
    for t in range(0, C):
        tl.store(y_ptr + base + t * 128, tl.exp(tl.load(x_ptr + base + t * 128) - m) / l)


def solve(x, y, rows, columns):
    R, C = -(-rows // 8), -(-columns // 16)
    padded = torch.full((R * 8, C * 16), -1e30, device=x.device)
    padded[:rows, :columns] = x
    tiled = padded.reshape(R, 8, C, 16).transpose(1, 2).contiguous()
    results = torch.empty_like(tiled)
    tiles[(R,)](tiled, results, C)
    y.copy_(results.permute(0, 2, 1, 3).reshape(R * 8, C * 16)[:rows, :columns])
