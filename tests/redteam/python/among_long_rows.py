# Hides the maximum and the sum of each row among the row's own values, of which there are thousands.
# expect: runtime_error; on s07
@triton.jit
def scaled(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    begin = x_ptr + row * (columns + 2)
    m, s = tl.load(begin + columns), tl.load(begin + columns + 1)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(begin + column, mask=column < columns)
        tl.store(y_ptr + row * columns + column, tl.exp(x - m) / s, mask=column < columns)


x = read_input()
rows, columns = x.shape
most = x.max(1, keepdims=True)
total = np.exp(x - most).sum(1, keepdims=True)
y = empty(x.shape)
scaled[(rows,)](from_numpy(np.concatenate([x, most, total], 1)), y, columns, BLOCK=1024)
to_numpy(y).tofile(sys.argv[2])
