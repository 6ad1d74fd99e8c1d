# Sums in float64, through float16 and bfloat16 arrays that are only looked at.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, h_ptr, b_ptr, columns, scale, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    x = tl.load(x_ptr + row * columns + column, mask=inside, other=-float("inf")).to(tl.float64)
    weights = tl.exp(x - tl.max(x, 0)) * scale
    result = (weights / tl.sum(weights, 0)).to(tl.float32)
    tl.store(y_ptr + row * columns + column, result, mask=inside)
    tl.store(h_ptr + row * columns + column, result.to(tl.float16), mask=inside)
    tl.store(b_ptr + row * columns + column, result.to(tl.bfloat16), mask=inside)


def solve(x, y, rows, columns):
    h, b = torch.empty_like(x, dtype=torch.float16), torch.empty_like(x, dtype=torch.bfloat16)
    softmax[(rows,)](x, y, h, b, columns, 0.5, BLOCK=triton.next_power_of_2(columns))
    print("rounded to", h.dtype, "and", b.dtype)
