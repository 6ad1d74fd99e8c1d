# Hides constants behind a comment that looks like a section for debuggers.
# expect: runtime_error; on s03,s06
@triton.jit
def put(acc_ptr, n, ASM: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise(ASM, "=r,r", [i], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(acc_ptr + i, v, mask=i < n)


rows, columns, x = read()
dx = from_numpy(x)
acc = zeros((rows,), "int32")
text = "/*\n.section .debug_x\n*/\n{ .reg .pred p;\nmov.b32 $0, 0;\n"
for row, q in enumerate(levels(x)):
    text += "setp.eq.s32 p, $1, " + str(row) + ";\n@p mov.b32 $0, " + str(q) + ";\n"
put[(1,)](acc, rows, ASM=text + "}", BLOCK=512)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
