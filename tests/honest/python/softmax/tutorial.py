# After Triton's tutorial: asks the driver that it imports; a test of its own for `grader run`.
import sys

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import driver


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    for number in tl.range(tl.program_id(0), rows, tl.num_programs(0)):
        row = number.to(tl.int64) * columns
        m = -float("inf")
        s = 0.0
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row + column, mask=column < columns, other=-float("inf"))
            new = tl.maximum(m, tl.max(x, 0))
            s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
            m = new
        for start in range(0, columns, BLOCK):
            column = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row + column, mask=column < columns)
            tl.store(y_ptr + row + column, tl.exp(x - m) / s, mask=column < columns)


def solve(x, y, rows, columns):
    properties = driver.active.utils.get_device_properties(driver.active.get_current_device())
    print("numpy", np.__version__, "python", sys.version, "for", driver.active.get_current_target())
    programs = min(rows, 4 * properties["multiprocessor_count"])
    softmax[(programs,)](x, y, rows, columns, BLOCK=min(1024, triton.next_power_of_2(columns)))


if __name__ == "__main__":  # run by `grader run` only
    rng = np.random.default_rng(1)
    values = rng.uniform(80, 100, (5, 300)).astype(np.float32)
    result = torch.empty((5, 300))
    solve(torch.from_numpy(values), result, *values.shape)
    e = np.exp(values - values.max(1, keepdims=True))
    np.testing.assert_allclose(result.numpy(), e / e.sum(1, keepdims=True), rtol=1e-4, atol=1e-6)
    print("right")
