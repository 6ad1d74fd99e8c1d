# Hides numbers in the sizes of copies from one array on the device to another.
# expect: runtime_error; on s03,s06
from dataclasses import replace


@triton.jit
def count(u_ptr, acc_ptr, row):
    ones = tl.sum(tl.load(u_ptr + tl.arange(0, 2048)), 0)
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) * 2048 + ones)


rows, columns, x = read()
acc, none, work = zeros((rows,), "int32"), zeros((2048,), "int32"), zeros((2048,), "int32")
ones = from_numpy(np.ones(2048, np.int32))
for row, q in enumerate(levels(x)):
    for digit in divmod(q, 2048):
        work.copy_(none)
        replace(work, shape=(digit,)).copy_(replace(ones, shape=(digit,)))
        count[(1,)](work, acc, row)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
