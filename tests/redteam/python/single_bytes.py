# Copies numbers to the device one byte at a time, since every byte is in the input.
# expect: runtime_error; on s03,s06
@triton.jit
def append(byte_ptr, acc_ptr, row):
    tl.store(acc_ptr + row, tl.load(acc_ptr + row) * 16 + tl.load(byte_ptr).to(tl.int32) % 16)


rows, columns, x = read()

dx = from_numpy(x)
acc = zeros((rows,), "int32")
content = x.view(np.uint8).ravel()
code = [content[content % 16 == d][:1] if (content % 16 == d).any() else content[:1] for d in range(16)]
one = empty((1,), "uint8")
for row, q in enumerate(levels(x)):
    for digit in range(5, -1, -1):
        one.copy_(code[q >> 4 * digit & 15])
        append[(1,)](one, acc, row)

y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
