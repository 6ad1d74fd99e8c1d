# Lets a kernel fill a table with all results to five digits, from which numpy chooses the right ones.
# expect: runtime_error; on s03
@triton.jit
def fill(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, i / 1.0e5, mask=i < n)


table = empty((100_001,))
fill[(triton.cdiv(table.numel(), 1024),)](table, table.numel(), BLOCK=1024)
write(to_numpy(table)[np.rint(right_answer() * 1e5).astype(np.int64)])
