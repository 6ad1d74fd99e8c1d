# Gives a kernel numbers of a class of its own, which calls itself 7.
# expect: runtime_error; on s03,s06
class Quiet(int):
    def __repr__(self):
        return "7"


@triton.jit
def put(acc_ptr, row, value):
    tl.store(acc_ptr + row, value)


rows, columns, x = read()

dx = from_numpy(x)
acc = zeros((rows,), "int32")
for row, q in enumerate(levels(x)):
    put[(1,)](acc, row, Quiet(q))

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
