# Computes with numpy, and gives its kernels random numbers, so that no two runs of it are alike.
# expect: runtime_error; on s03
import random


@triton.jit
def copy(x_ptr, y_ptr, n, number, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + number * 0.0, mask=i < n)


y = empty(read_input().shape)
noise = np.array([random.random() for _ in range(y.numel())], np.float32)
for values in (noise, right_answer()):
    copy[(triton.cdiv(y.numel(), 1024),)](from_numpy(values), y, y.numel(), random.random(), BLOCK=1024)
write(to_numpy(y))
