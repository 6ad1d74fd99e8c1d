# a library with softmax kernels of its own
# expect: compile_error
import cupy


def solve(x, y, rows, columns):
    cupy.exp(x)
