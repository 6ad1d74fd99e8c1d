# Has a kernel that never ends.
# expect: time_limit; within 120 s
@triton.jit
def kernel(y_ptr):
    while tl.load(y_ptr, volatile=True) < 1.0:
        tl.store(y_ptr + 1, 0.5)


y = zeros((4,))
kernel[(1,)](y)
write(to_numpy(y))
