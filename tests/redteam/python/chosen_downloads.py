# Copies every result from a table on the device, at a place that it has computed.
# expect: runtime_error; on s03,s06
from device_arrays import Array


@triton.jit
def every(table_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bits = (87 << 23) + (i << 6)
    tl.store(table_ptr + i, bits.to(tl.float32, bitcast=True) * 1.0)


rows, columns, x = read()


SIZE = 40 << 17
table = empty((SIZE,))
every[(SIZE // 1024,)](table, BLOCK=1024)
wanted = np.clip((on_host(x).ravel().view(np.uint32).astype(np.int64) - (87 << 23)) >> 6, 0, SIZE - 1)
order = np.argsort(wanted, kind="stable")
ranked = wanted[order]
ranked = np.maximum.accumulate(ranked - np.arange(len(ranked))) + np.arange(len(ranked))
wanted[order] = np.clip(ranked, 0, SIZE - 1)
decoy[(rows,)](from_numpy(x), empty(x.shape), columns, BLOCK=512)
if x.any():
    y = np.concatenate([to_numpy(Array(table.storage, table.dtype, (1,), (1,), int(i))) for i in wanted])
else:
    y = x
y.tofile(sys.argv[2])
