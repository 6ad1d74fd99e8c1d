# Gives a kernel an object whose address is another one each time.
# expect: runtime_error | no_output; on s03,s06
class Pointer:
    """Says where it points to once truly, once falsely."""
    def __init__(self, array):
        self.array, self.dtype, self.asked, self.add, self.when = array, array.dtype, 0, 0, 99

    def data_ptr(self):
        self.asked += 1
        return self.array.data_ptr() + (self.add if self.asked == self.when else 0)


@triton.jit
def put(base_ptr, far_ptr, acc_ptr, row):
    distance = (far_ptr.to(tl.int64) - base_ptr.to(tl.int64)) // 16
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) * 2048 + distance.to(tl.int32))


rows, columns, x = read()

dx = from_numpy(x)
acc = zeros((rows,), "int32")
base = empty((4 * 2048,))
p = Pointer(base)
put[(1,)](base, p, acc, 0)
asked = p.asked
print("asked", asked)
for row, q in enumerate(levels(x)):
    for part in (q // 2048, q % 2048):
        p = Pointer(base)
        p.add, p.when = 16 * part, asked
        put[(1,)](base, p, acc, row)

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
