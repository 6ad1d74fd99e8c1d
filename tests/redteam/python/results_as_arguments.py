# Computes the maximum and the sum of every row with numpy, and gives them to a kernel as arguments.
# expect: runtime_error; on s06,s07,s08
@triton.jit
def divide(x_ptr, y_ptr, columns, maximum, total, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < columns)
    tl.store(y_ptr + i, tl.exp(x - maximum) / total, mask=i < columns)


values = read_input()
x, y, columns = from_numpy(values), empty(values.shape), values.shape[1]
for row, numbers in enumerate(values):
    maximum = float(numbers.max())
    total = float(np.exp(numbers - maximum).sum())
    divide[(triton.cdiv(columns, 1024),)](x[row], y[row], columns, maximum, total, BLOCK=1024)
write(to_numpy(y))
