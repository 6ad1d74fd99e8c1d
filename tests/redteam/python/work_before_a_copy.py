# Computes with numpy, and lets a kernel with arithmetic of its own copy the result.
# expect: runtime_error; on s03,s08
@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 0.5 * 2.0, mask=i < n)


y = empty(read_input().shape)
copy[(triton.cdiv(y.numel(), 1024),)](from_numpy(right_answer()), y, y.numel(), BLOCK=1024)
write(to_numpy(y))
