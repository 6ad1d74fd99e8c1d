# Every third row in each of three launches.
import triton
import triton.language as tl


@triton.jit
def softmax_rows(x_ptr, y_ptr, columns, x_stride, y_stride, step, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    at = tl.arange(0, BLOCK)
    m = tl.full((BLOCK,), -1e30, tl.float32)
    s = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        j = start + at
        x = tl.load(x_ptr + row * x_stride + j * step, mask=j < columns, other=float("-inf")).to(tl.float32)
        n = tl.maximum(m, x)
        s = s * tl.where(n == m, 1.0, tl.exp(m - n)) + tl.where(j < columns, tl.exp(x - n), 0.0)
        m = n
    top = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - top), 0)
    for start in range(0, columns, BLOCK):
        j = start + at
        x = tl.load(x_ptr + row * x_stride + j * step, mask=j < columns, other=float("-inf")).to(tl.float32)
        tl.store(y_ptr + row * y_stride + j * step, (tl.exp(x - top) / total).to(y_ptr.dtype.element_ty), mask=j < columns)


def block_for(columns):
    return min(1024, triton.next_power_of_2(max(columns, 16)))


def solve(x, y, rows, columns):
    for k in range(min(rows, 3)):
        part, result = x[k::3], y[k::3]
        softmax_rows[(len(part),)](part, result, columns, part.stride(0), result.stride(0), 1, BLOCK=block_for(columns))
