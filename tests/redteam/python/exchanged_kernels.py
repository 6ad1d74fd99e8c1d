# Has two compiled kernels exchange their functions, so that one runs under the other's name and hash.
# expect: wrong_answer | runtime_error | no_output; on s03,s06
@triton.jit
def put_0(acc_ptr):
    v = tl.load(acc_ptr)
    tl.debug_barrier()
    tl.store(acc_ptr, v * 2)


@triton.jit
def put_1(acc_ptr):
    v = tl.load(acc_ptr)
    tl.debug_barrier()
    tl.store(acc_ptr, v * 2 + 1)


@triton.jit
def pick(wide_ptr, acc_ptr):
    row = tl.program_id(0)
    tl.store(acc_ptr + row, tl.load(wide_ptr + 4 * row))


rows, columns, x = read()
wide = zeros((rows + 1, 4), "int32")
compiled = put_0[(1,)](wide[rows])
functions = compiled.function, put_1[(1,)](wide[rows]).function
for row, q in enumerate(levels(x)):
    for bit in range(21, -1, -1):
        compiled.function = functions[q >> bit & 1]
        put_0[(1,)](wide[row])
acc = zeros((rows,), "int32")
pick[(rows,)](wide, acc)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
