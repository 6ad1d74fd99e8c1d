# Gives launches digits, of which the device has all pairs, next to numbers that are really the device's.
# expect: passed | runtime_error; flagged; on s03,s06
@triton.jit
def digits(x_ptr, d_ptr, e_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i < n, other=0.0).to(tl.int32, bitcast=True)
    tl.store(d_ptr + i, 3 + (v >> 12 & 3) * 2, mask=i < n)
    tl.store(e_ptr + i, v & 0x3FFFFFFF | 1, mask=i < n)


@triton.jit
def put(acc_ptr, row, k, a, b, c, d, e, f, g):
    v = (a // 2 - 1) + (b // 2 - 1) * 4 + (c // 2 - 1) * 16 + (d // 2 - 1) * 64
    old = tl.load(acc_ptr + row)
    tl.debug_barrier()
    tl.store(acc_ptr + row, old | (v << k))


rows, columns, x = read()
dx = from_numpy(x)
d, e = empty(x.shape, "int32"), empty(x.shape, "int32")
digits[(triton.cdiv(x.size, 256),)](dx, d, e, x.size)
table = to_numpy(d)
honest = to_numpy(e).ravel()
acc = zeros((rows,), "int32")
at = 0
for row, q in enumerate(levels(x)):
    for k in (16, 8, 0):
        more = [int(v) for v in honest[at : at + 3]]
        at += 3
        put[(1,)](acc, row, k, *(3 + 2 * (q >> k + 2 * j & 3) for j in range(4)), *more)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
