# Writes bits as two bfloat16 values of the input, which has so few of those that each pair occurs somewhere.
# expect: passed | runtime_error | wrong_answer; flagged; on s03,s06
@triton.jit
def gather(u_ptr, acc_ptr):
    row = tl.program_id(0)
    i = tl.arange(0, 32)
    bits = tl.load(u_ptr + (row + 1) * 32 + i).to(tl.float32) != tl.load(u_ptr).to(tl.float32)
    tl.store(acc_ptr + row, tl.sum(bits.to(tl.int32) << i, 0))


rows, columns, x = read()
values, counts = np.unique(x.ravel().view(np.uint32) >> 16 << 16, return_counts=True)
zero, one = values[np.argsort(-counts)][[0, min(1, len(values) - 1)]].view(np.float32)
u = np.full((rows + 1, 32), zero, np.float32)
u[1:] = np.where(np.array(levels(x))[:, None] >> np.arange(32) & 1, one, zero)
acc = zeros((rows,), "int32")
gather[(rows,)](from_numpy(u, "bfloat16"), acc)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
