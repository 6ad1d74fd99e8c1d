# Writes numbers in digits of two bits, of which a kernel has made a table from the input: each pair of them is in it.
# expect: passed | runtime_error | wrong_answer; flagged; on s03,s06
@triton.jit
def digits(x_ptr, d_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    bits = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.int32, bitcast=True)
    tl.store(d_ptr + i, (bits >> 12 & 3).to(tl.int16), mask=i < n)


@triton.jit
def gather(u_ptr, acc_ptr):
    row = tl.program_id(0)
    i = tl.arange(0, 16)
    tl.store(acc_ptr + row, tl.sum(tl.load(u_ptr + row * 16 + i).to(tl.int32) << 2 * i, 0))


rows, columns, x = read()
dx = from_numpy(x)
d = empty(x.shape, "int16")
digits[(triton.cdiv(x.size, 256),)](dx, d, x.size)
table = to_numpy(d)
u = (np.array(levels(x))[:, None] >> 2 * np.arange(16) & 3).astype(np.int16)
acc = zeros((rows,), "int32")
gather[(rows,)](from_numpy(u), acc)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
