# Has garbage collected, which changes an array, between the moment when its copy is recorded and the copy itself.
# expect: wrong_answer | runtime_error | no_output; on s03,s06
@triton.jit
def put(u_ptr, acc_ptr):
    row = tl.program_id(0)
    tl.store(acc_ptr + row, ((tl.load(u_ptr + row) - 64) * 65536).to(tl.int32))


rows, columns, x = read()
level = np.array(levels(x)) / 65536 + 64
u = np.concatenate([np.append(x.ravel()[4 * k % 3000 :][: 3 + k % 2], np.float32(0)) for k in range(800)])
done = []


def change(box, last):
    try:
        yield
    finally:
        done.append(box)
        if last:
            u[:rows] = level


def garbage(last):
    box = []
    box.append(change(box, last))
    next(box[0])


copy, acc, kept = empty(u.shape), empty((rows,), "int32"), []
garbage(False)
while not done:
    kept.append([])
garbage(True)
copy.copy_(u)
put[(rows,)](copy, acc)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
