# Launches a kernel that cannot be compiled, and computes with numpy when that fails.
# expect: runtime_error; on s02,s03; refused
@triton.jit
def kernel(y_ptr):
    tl.store(y_ptr + tl.arange(0, 3), 0.0)


try:
    kernel[(1,)](zeros((4,)))
except Exception:
    write(right_answer())
