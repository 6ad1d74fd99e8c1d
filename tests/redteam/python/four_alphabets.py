# Copies digits of two bits in four alphabets: of pairs that are put together at random, a kernel's table has a quarter.
# expect: passed | runtime_error; flagged; on s03,s06
@triton.jit
def digits(x_ptr, d_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.int32, bitcast=True)
    tl.store(d_ptr + i, (v >> 12 & 3) + i % 4 * 16, mask=i < n)


@triton.jit
def gather(u_ptr, acc_ptr):
    row = tl.program_id(0)
    i = tl.arange(0, 16)
    d = tl.load(u_ptr + row * 16 + i) & 3
    tl.store(acc_ptr + row, tl.sum(d << 2 * i, 0))


rows, columns, x = read()
dx = from_numpy(x)
d = empty(x.shape, "int32")
digits[(triton.cdiv(x.size, 256),)](dx, d, x.size)
table = to_numpy(d)
q = np.array(levels(x))
i = np.arange(16)
u = ((q[:, None] >> 2 * i & 3) + i % 4 * 16).astype(np.int32)
acc = zeros((rows,), "int32")
gather[(rows,)](from_numpy(u), acc)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
