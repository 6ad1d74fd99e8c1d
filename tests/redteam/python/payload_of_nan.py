# Hides numbers in the bits of a NaN that a kernel gets as an argument, for NaN equals no number, not even itself.
# expect: runtime_error; on s03,s06
import struct


@triton.jit
def put(acc_ptr, row, value):
    tl.store(acc_ptr + row, value.to(tl.int32, bitcast=True) & 0x3FFFFF)


rows, columns, x = read()
acc = zeros((rows,), "int32")
for row, q in enumerate(levels(x)):
    [hidden] = struct.unpack("<d", struct.pack("<Q", 0x7FF8 << 48 | q << 29))
    put[(1,)](acc, row, hidden)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
