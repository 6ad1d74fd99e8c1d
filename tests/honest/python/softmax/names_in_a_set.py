# Parts of the rows in the order of a set of names, which Python's hashes shuffle.
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
    half, most = rows // 2, rows - rows // 4
    parts = {"upper": slice(0, half), "lower": slice(half, most), "lowest": slice(most, rows)}
    for name in {"upper", "lower", "lowest"}:
        part = x[parts[name]]
        if len(part):
            softmax[(len(part),)](part, y[parts[name]], columns, columns, BLOCK=block)
