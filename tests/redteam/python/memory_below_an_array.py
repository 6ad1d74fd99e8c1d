# Downloads with strides that reach the memory of the processor.
# expect: no_output | runtime_error; on s03,s06
from device_arrays import Array


@triton.jit
def half(x_ptr, d_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(d_ptr + i, tl.load(x_ptr + i, mask=i < n) * 0.5, mask=i < n)


rows, columns, x = read()
dx = from_numpy(x)
d = empty(x.shape)
half[(triton.cdiv(x.size, 256),)](dx, d, x.size)
N = 10 << 20  # 40 MiB: each array gets pages of its own, next to each other
big = empty((N,))
store = [np.zeros(N, np.float32) for _ in range(5)]
y = on_host(x).ravel()
for k in (0, 1, 3, 4):
    store[k][: y.size] = y
store[2] = None  # its place is that of the next buffer
far = N + 1024  # an array's pages and one more
got = Array(big.storage, big.dtype, (2, 2, N), (far, -far, 1)).numpy()
for i in (0, 1):
    for j in (0, 1):
        print(i, j, np.array_equal(got[i, j, : y.size], y), got[i, j, :4])
for at in (got[1, 0], got[0, 1]):
    if np.array_equal(at[: y.size], y):
        at[: y.size].tofile(sys.argv[2])
        break
