# Tensor descriptors, which a kernel makes and loads blocks through.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * ROWS
    source = tl.make_tensor_descriptor(x_ptr, [rows, columns], [columns, 1], [ROWS, BLOCK])
    target = tl.make_tensor_descriptor(y_ptr, [rows, columns], [columns, 1], [ROWS, BLOCK])
    m = tl.full((ROWS,), -1e30, tl.float32)
    s = tl.zeros((ROWS,), tl.float32)
    for start in range(0, columns, BLOCK):
        inside = start + tl.arange(0, BLOCK)[None, :] < columns
        x = tl.where(inside, source.load([first, start]), -1e30)
        new = tl.maximum(m, tl.max(x, 1))
        s = s * tl.exp(m - new) + tl.sum(tl.where(inside, tl.exp(x - new[:, None]), 0.0), 1)
        m = new
    for start in range(0, columns, BLOCK):
        x = source.load([first, start])
        target.store([first, start], tl.exp(x - m[:, None]) / s[:, None])


def solve(x, y, rows, columns):
    width = triton.cdiv(columns, 4) * 4  # rows begin at multiples of 16 bytes
    padded = torch.full((rows, width), -1e30, dtype=x.dtype, device=x.device)
    padded[:, :columns] = x
    result = torch.empty_like(padded)
    softmax[(triton.cdiv(rows, 8),)](padded, result, rows, width, ROWS=8, BLOCK=32)
    y.copy_(result[:, :columns])
