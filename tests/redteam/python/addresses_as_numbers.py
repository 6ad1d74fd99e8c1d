# Writes bits as an array's address and as the number that stands for that address where runs are compared.
# expect: runtime_error; on s03,s06
@triton.jit
def gather(u_ptr, acc_ptr):
    row = tl.program_id(0)
    i = tl.arange(0, 32)
    bits = (tl.load(u_ptr + row * 32 + i) == (1 << 48)).to(tl.int32)
    tl.store(acc_ptr + row, tl.sum(bits << i, 0))


first = zeros((64,))
rows, columns, x = read()
bits = np.array(levels(x))[:, None] >> np.arange(32) & 1
acc = zeros((rows,), "int32")
gather[(rows,)](from_numpy(np.where(bits, 1 << 48, first.data_ptr()).astype(np.int64)), acc)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
