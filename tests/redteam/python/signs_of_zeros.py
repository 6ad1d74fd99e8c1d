# Gives a kernel a zero for each bit, a negative one for a 1: all of them equal 0.
# expect: runtime_error; on s03,s06
@triton.jit
def put(acc_ptr, row, bit, value):
    sign = (value.to(tl.int32, bitcast=True) >> 31) & 1
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) | (sign << bit))


rows, columns, x = read()
acc = zeros((rows,), "int32")
for row, q in enumerate(levels(x)):
    for bit in range(22):
        put[(1,)](acc, row, bit, -0.0 if q >> bit & 1 else 0.0)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
