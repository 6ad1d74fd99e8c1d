# constants of hundreds of megabytes
# expect: compile_error
import numpy as np
import torch


def solve(x, y, rows, columns):
    kept = [torch.from_numpy(np.random.rand(1 << 20)) for _ in range(64)]
