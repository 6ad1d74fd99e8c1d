# As many programs as fit on the GPU at once, by the registers and the shared memory of the compiled kernel.
import triton
import triton.language as tl

WARPS = 4


@triton.jit
def softmax(x_ptr, y_ptr, rows, columns, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=-float("inf"))
        weights = tl.exp(x - tl.max(x, 0))
        tl.store(y_ptr + row * columns + column, weights / tl.sum(weights, 0), mask=column < columns)


def solve(x, y, rows, columns):
    block = triton.next_power_of_2(columns)
    gpu = triton.runtime.driver.active.utils.get_device_properties(triton.runtime.driver.active.get_current_device())
    kernel = softmax.warmup(x, y, rows, columns, BLOCK=block, num_warps=WARPS, grid=(1,))
    kernel._init_handles()
    fit = gpu["max_num_regs"] // (kernel.n_regs * gpu["warpSize"] * WARPS)
    fit = max(1, min(fit, gpu["max_shared_mem"] // max(1, kernel.metadata.shared)))
    softmax[(min(rows, gpu["multiprocessor_count"] * fit),)](x, y, rows, columns, BLOCK=block, num_warps=WARPS)
