# Moves the target of a copy while its values are converted.
# expect: wrong_answer | runtime_error | no_output; on s03,s06
from device_arrays import Array


class Moves:
    def __init__(self, array, at):
        self.array, self.at = array, at

    def __float__(self):
        a = self.array
        a.__init__(a.storage, a.dtype, a.shape, a.strides, self.at)
        return 1.0


@triton.jit
def find(u_ptr, acc_ptr):
    row = tl.program_id(0)
    i = tl.arange(0, 2048)
    high = tl.max(tl.where(tl.load(u_ptr + row * 4096 + i) != 0, i, 0), 0)
    low = tl.max(tl.where(tl.load(u_ptr + row * 4096 + 2048 + i) != 0, i, 0), 0)
    tl.store(acc_ptr + row, high * 2048 + low)


rows, columns, x = read()
dx = from_numpy(x)
big = zeros((rows * 4096,))
acc = zeros((rows,), "int32")
for row, q in enumerate(levels(x)):
    for part, base in ((q // 2048, 0), (q % 2048, 2048)):
        array = Array(big.storage, big.dtype, (1,), (1,))
        values = np.empty(1, object)
        values[0] = Moves(array, row * 4096 + base + part)
        array.copy_(values)
find[(rows,)](big, acc)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
