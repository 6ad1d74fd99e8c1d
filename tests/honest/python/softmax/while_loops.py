# While loops in the kernel, over a grid of two dimensions.
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    if row >= rows:
        return
    m = tl.full((BLOCK,), -1e30, tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    start = 0
    while start < columns:
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-1e30)
        new = tl.maximum(m, x)
        s = s * tl.exp(m - new) + tl.where(column < columns, tl.exp(x - new), 0.0)
        m = new
        start += BLOCK
    top = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - top), 0)
    start = 0
    while start < columns:
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns)
        tl.store(y_ptr + row * columns + column, tl.exp(x - top) / total, mask=column < columns)
        start += BLOCK


def solve(x, y, rows, columns):
    softmax[(triton.cdiv(rows, 4), 4)](x, y, rows, columns, BLOCK=128)
