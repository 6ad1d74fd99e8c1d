# Rows padded to a power of two, with whatever lies in memory: the kernel masks it.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    block = triton.next_power_of_2(columns)
    padded = torch.empty((rows, block), device=x.device)
    padded[:, :columns].copy_(x)
    softmax[(rows,)](padded, y, columns, block, BLOCK=block)
