# PTX in a kernel.
import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
    scaled = (x - tl.max(x, 0)) * 1.4426950408889634
    weights = tl.inline_asm_elementwise(
        "ex2.approx.ftz.f32 $0, $1;", "=f,f", [scaled], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
