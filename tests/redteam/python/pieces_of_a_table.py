# Copies pieces of a table that came from the device back there, in the order of its results.
# expect: runtime_error; on s03,s06
@triton.jit
def every(table_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(table_ptr + i, (i + 1).to(tl.float32) * 0.0000152587890625 / 4)


@triton.jit
def gather(piece_ptr, y_ptr, first, n):
    i = tl.arange(0, 64)
    # every fourth value of the piece is a result; the three after it are what follows in the table
    tl.store(y_ptr + first + i // 4, tl.load(piece_ptr + i), mask=(i % 4 == 0) & (first + i // 4 < n))


rows, columns, x = read()

size = 1 << 18
table = empty((size + 64,), "float32")
every[(size // 64 + 1,)](table, BLOCK=64)
table = to_numpy(table)
n = x.size
y = empty((n,))
places = np.clip(np.rint(on_host(x).ravel().astype(np.float64) * size) - 1, 0, size - 1).astype(np.int64)
places = np.concatenate([places, np.zeros(-n % 16, np.int64)])
piece = empty((64,))
for first in range(0, n, 16):
    piece.copy_(table[(places[first : first + 16, None] + np.arange(4)).ravel()])
    gather[(1,)](piece, y, first, n)
to_numpy(y).tofile(sys.argv[2])
