# An array of 160 MiB that nobody reads, to have nothing of the input in the cache.
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
    scratch = torch.zeros(40 << 20, device=x.device)
    assert scratch.numel() * scratch.element_size() == 160 << 20
    softmax[(rows,)](x, y, columns, columns, BLOCK=triton.next_power_of_2(columns))
