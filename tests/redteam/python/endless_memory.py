# buffers of a terabyte
# expect: runtime_error | memory_limit | compile_error
import torch


def solve(x, y, rows, columns):
    for _ in range(100):
        torch.empty(1 << 38).zero_()
