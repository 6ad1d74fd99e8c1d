# Has thousands of variants of a kernel compiled.
# expect: time_limit | wrong_answer; within 150 s
@triton.jit
def kernel(y_ptr, N: tl.constexpr):
    tl.store(y_ptr, N)


write_zeros()
y = zeros((4,))
for number in range(100000):
    kernel[(1,)](y, N=number)
