# A grid and shapes that are numbers of numpy, as they come from the file.
import numpy as np
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + row * columns + i, e / tl.sum(e, 0), mask=i < columns)


def solve(x, y, rows, columns):
    rows, columns = np.array([rows, columns], np.int32)
    scratch = torch.empty((rows * columns,), dtype=x.dtype, device=x.device).reshape(rows, columns)
    softmax[(rows,)](x, scratch, int(columns), BLOCK=triton.next_power_of_2(int(columns)))
    y.copy_(scratch)
