# host code asks for values in every way that it knows
# expect: compile_error
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def solve(x, y, rows, columns):
    found = []
    for ask in (lambda: x.numpy(), lambda: x.cpu(), lambda: x.tolist(), lambda: float(x[0, 0]), lambda: x + 1):
        try:
            found.append(ask())
        except Exception as error:
            refused = error
    assert not found, "BYPASSED: host code has values"
    raise refused
