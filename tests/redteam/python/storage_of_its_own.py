# Gives an array a storage whose address changes between two reads.
# expect: wrong_answer | runtime_error | no_output; on s03,s06
from device_arrays import Array


@triton.jit
def count(t_ptr):
    i = tl.program_id(0) * 1024 + tl.arange(0, 1024)
    tl.store(t_ptr + i, i)


class Two:
    def __init__(self, array):
        self.base, self.add, self.asked = array.data_ptr(), 0, 0

    @property
    def address(self):
        self.asked += 1
        return self.base + (self.add if self.asked > 1 else 0)


rows, columns, x = read()
dx = from_numpy(x)
size = 1 << 22
table = empty((size,), "int32")
count[(size // 1024,)](table)
acc = zeros((rows,), "int32")
for row, q in enumerate(levels(x)):
    two = Two(table)
    two.add = 4 * q
    acc.reshape(rows, 1)[row].copy_(Array(two, table.dtype, (1,), (1,)))
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
