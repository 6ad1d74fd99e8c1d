# Changes an array while its size is added to its address.
# expect: wrong_answer | runtime_error | no_output; on s03,s06
class Big(int):
    def __radd__(self, other):
        if move:
            wide._address = move.pop()
        return 1 << 60


@triton.jit
def count(t_ptr):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(t_ptr + i, i)


from device_arrays import Array

rows, columns, x = read()
dx = from_numpy(x)
size = 1 << 22
table = empty((size,), "int32")
count[(size // 1024,)](table)
acc = zeros((rows,), "int32")
move = []
wide = type(dx.storage)(Big(64))
begin = wide.address
for row, q in enumerate(levels(x)):
    move = [table.data_ptr() + 4 * q]
    acc.reshape(rows, 1)[row].copy_(Array(wide, table.dtype, (1,), (1,)))
    wide._address = begin
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
