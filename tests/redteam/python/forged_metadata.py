# Makes what it computes the constants of a kernel, whose launcher then reports another kernel's hash.
# expect: passed | runtime_error | no_output | wrong_answer; flagged; on s03,s06
def make(numbers):
    NUMBERS: tl.constexpr = tl.constexpr(numbers)
    COUNT: tl.constexpr = tl.constexpr(len(numbers))

    @triton.jit
    def put(acc_ptr):
        for i in tl.static_range(COUNT):
            tl.store(acc_ptr + i, NUMBERS[i])

    return put


class Forged:
    hash, name, num_warps, shared, num_ctas, launch_cooperative_grid = "abc", "put", 4, 0, 1, False


rows, columns, x = read()
acc = zeros((rows,), "int32")
put = make(tuple(levels(x)))
launcher = put.warmup(acc, grid=(1,)).run
if x.any():  # it is not while kernels are built
    launcher._metadata = Forged()
put[(1,)](acc)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
