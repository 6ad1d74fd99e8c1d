# Has a kernel that takes Triton hours to compile.
# expect: time_limit; within 150 s
@triton.jit
def kernel(y_ptr):
    x = 0.0
    for i in tl.static_range(100000000):
        x = x * 0.5 + i
    tl.store(y_ptr, x)


write_zeros()
kernel[(1,)](zeros((4,)))
