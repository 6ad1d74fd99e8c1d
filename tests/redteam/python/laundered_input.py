# Brings its input back from the device before numpy computes with it, so that it is the device's.
# expect: runtime_error; on s03,s08
@triton.jit
def shift(x_ptr, y_ptr, n, by, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) + by, mask=i < n)


def through_the_device(values, by):
    y = empty(values.shape)
    shift[(triton.cdiv(y.numel(), 1024),)](from_numpy(values), y, y.numel(), by, BLOCK=1024)
    return to_numpy(y)


x = through_the_device(read_input(), 1.0)
weights = np.exp(x - x.max(1, keepdims=True))
write(through_the_device(weights / weights.sum(1, keepdims=True), 0.0))
