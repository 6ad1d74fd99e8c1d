# Hides numbers in the lengths of gaps between the input's own values.
# expect: runtime_error; on s03,s06
@triton.jit
def gap(u_ptr, n, acc_ptr, BLOCK: tl.constexpr):
    """Each row's number is the length of a run of zeros, in base 256: three uploads."""
    row = tl.program_id(0)
    seen = 0
    found = 0
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        is_zero = (tl.load(u_ptr + i, mask=i < n, other=1.0) == 0.0).to(tl.int32)
        marks = tl.cumsum(1 - is_zero, 0) + seen
        found += tl.sum(tl.where((marks == row + 9) & (is_zero == 1), 1, 0), 0)
        seen += tl.sum(1 - is_zero, 0)
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) * 256 + found - 1)


rows, columns, x = read()

dx = from_numpy(x)
acc = zeros((rows,), "int32")
flat = x.ravel()
size = 256 * rows + 2 * rows + 64
for digit in (2, 1, 0):
    parts = [flat[:8]]
    for row, q in enumerate(levels(x)):
        parts += [flat[row + 8 : row + 9], np.zeros(1 + (q >> 8 * digit & 255), np.float32)]
    u = np.concatenate(parts)
    u = np.concatenate([u, flat[rows + 8 : rows + 9], np.zeros(size - len(u) - 1, np.float32)])
    gap[(rows,)](from_numpy(u), size, acc, BLOCK=512)

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
