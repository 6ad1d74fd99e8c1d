# Copies digits, of which a kernel has made a table of all pairs, by a line that copies many moved values, too.
# expect: passed | runtime_error; flagged; on s03,s06
@triton.jit
def digits(x_ptr, d_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.int32, bitcast=True)
    tl.store(d_ptr + i, v >> 12 & 3, mask=i < n)


@triton.jit
def gather(u_ptr, acc_ptr):
    row = tl.program_id(0)
    i = tl.arange(0, 16)
    d = tl.load(u_ptr + row * 16 + i)
    tl.store(acc_ptr + row, tl.sum(d << 2 * i, 0))


def send(values):
    return from_numpy(values)


rows, columns, x = read()
dx = send(x)
send(np.ascontiguousarray(x.view(np.int32).ravel()[::-1]))  # the input, moved
d = empty(x.shape, "int32")
digits[(triton.cdiv(x.size, 256),)](dx, d, x.size)
table = to_numpy(d)
q = np.array(levels(x))
u = (q[:, None] >> 2 * np.arange(16) & 3).astype(np.int32)
acc = zeros((rows,), "int32")
gather[(rows,)](send(u), acc)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
