# Copies the input as float16, each value rounded up or not: a bit of a result.
# expect: passed | runtime_error; flagged; on s03,s06
@triton.jit
def decode(x_ptr, h_ptr, acc_ptr, columns):
    row = tl.program_id(0)
    i = tl.arange(0, 32)
    inside = i < 22
    x = tl.load(x_ptr + row * columns + i, mask=inside, other=0.0).to(tl.float16).to(tl.float32)
    h = tl.load(h_ptr + row * 22 + i, mask=inside, other=0.0).to(tl.float32)
    bits = (h > x).to(tl.int32)
    tl.store(acc_ptr + row, tl.sum(bits << i, 0))


rows, columns, x = read()
dx = from_numpy(x)
q = np.array(levels(x))
near = np.ascontiguousarray(x[:, :22].astype(np.float16)).view(np.uint16)
h = (near + (q[:, None] >> np.arange(22) & 1)).astype(np.uint16).view(np.float16)
acc = zeros((rows,), "int32")
decode[(rows,)](dx, from_numpy(h), acc, columns)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
