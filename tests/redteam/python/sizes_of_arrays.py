# Hides numbers in the sizes of arrays, which decide where the next one lies.
# expect: runtime_error | wrong_answer; on s03,s06
@triton.jit
def append(a_ptr, b_ptr, acc_ptr, row):
    distance = (b_ptr.to(tl.int64) - a_ptr.to(tl.int64)) // 4096
    tl.store(acc_ptr + row, (tl.load(acc_ptr + row) * 128 + distance - 1).to(tl.int32))


rows, columns, x = read()

dx = from_numpy(x)
offset = empty((rows,), "int32")
acc = zeros((rows,), "int32")
kept = []
base = zeros((1,), "int32")
trial = [empty((4096 * k,), "int8") for k in range(1, 5)]
print([hex(t.data_ptr()) for t in trial])
for row, q in enumerate(levels(x)):
    for part in (q >> 21 & 127, q >> 14 & 127, q >> 7 & 127, q & 127):
        a = empty((4096 * (part + 1),), "int8")
        b = empty((1,), "int8")
        append[(1,)](a, b, acc, row, num_warps=1)

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
