# Calls the grader's launcher past the place where launches are noted.
# expect: runtime_error; on s03,s06
@triton.jit
def put(acc_ptr, row, value):
    tl.store(acc_ptr + row, value)


rows, columns, x = read()

dx = from_numpy(x)
acc = zeros((rows,), "int32")
compiled = put[(1,)](acc, 0, 18)
if compiled is not None and x.any():
    launcher = compiled.run
    for row, q in enumerate(levels(x)):
        launcher._launch(compiled.function, (1, 1, 1), 0, (acc, row, q))

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
