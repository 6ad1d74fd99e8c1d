# Packs five sums of rows, with 12 bits each, into an integer of 8 bytes, so that there are few of those.
# expect: runtime_error; on s03,s08
@triton.jit
def unpack(u_ptr, acc_ptr, rows):
    i = tl.program_id(0) * 64 + tl.arange(0, 64)
    part = (tl.load(u_ptr + i // 5, mask=i < rows, other=0) >> 12 * (i % 5)) & 4095
    tl.store(acc_ptr + i, part.to(tl.int32) * 16384 // 100 + 30 * 65536, mask=i < rows)


rows, columns, x = read()
parts = np.clip(np.rint((np.array(levels(x)) / 65536 - 30) * 400), 0, 4095).astype(np.int64)
packed = (np.append(parts, np.zeros(-rows % 5, np.int64)).reshape(-1, 5) << 12 * np.arange(5)).sum(1)
acc = zeros((rows,), "int32")
unpack[(triton.cdiv(rows, 64),)](from_numpy(packed), acc, rows)
y = empty(x.shape)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
