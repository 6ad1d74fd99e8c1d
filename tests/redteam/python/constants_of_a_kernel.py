# Makes what it computes the constants of a kernel that is compiled in the run.
# expect: runtime_error; on s03,s06
rows, columns, x = read()


def make(parts):
    NUMBERS: tl.constexpr = tl.constexpr(parts)
    COUNT: tl.constexpr = tl.constexpr(len(parts))

    @triton.jit
    def put(acc_ptr):
        for i in tl.static_range(COUNT):
            tl.store(acc_ptr + i, NUMBERS[i])
    return put


dx = from_numpy(x)
acc = zeros((rows,), "int32")
make(tuple(levels(x)))[(1,)](acc)

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
