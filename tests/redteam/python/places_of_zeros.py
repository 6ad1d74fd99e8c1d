# Hides numbers in the place of a single zero among each row's own values.
# expect: runtime_error; on s03,s06
@triton.jit
def place(u_ptr, acc_ptr, wide, base, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    u = tl.load(u_ptr + row * wide + i, mask=i < wide, other=1.0)
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) * base + tl.sum(tl.where(u == 0.0, i, 0), 0))


rows, columns, x = read()
acc = zeros((rows,), "int32")
bits = 8 if columns > 255 else 4
for digit in reversed(range(-(-22 // bits))):
    at = np.array(levels(x)) >> bits * digit & (1 << bits) - 1
    u = np.stack([np.insert(row, i, 0) for row, i in zip(x, at, strict=True)])
    place[(rows,)](from_numpy(u), acc, columns + 1, 1 << bits, BLOCK=1024)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
