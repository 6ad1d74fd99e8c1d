# Opens the record by its descriptor and changes it.
# expect: runtime_error; on s03,s06
@triton.jit
def half(x_ptr, d_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(d_ptr + i, tl.load(x_ptr + i, mask=i < n) * 0.5, mask=i < n)


rows, columns, x = read()
dx = from_numpy(x)
d = empty(x.shape)
half[(triton.cdiv(x.size, 256),)](dx, d, x.size)
junk = to_numpy(d).tobytes()
y = on_host(x).tobytes()
import copy

kept = []
copy.dispatch_table.update({"kept": kept})  # so that they are never closed
for number in range(4, 12):
    try:
        file = open("harmless", "r+b", buffering=0, opener=lambda path, flags: number)
        kept.append(file)
        end = file.seek(0, 1)
        file.seek(0)
        begin = file.read(1)
        file.seek(0)
        content = file.read(1 << 24) if begin == b"[" else b""
        at = content.rfind(junk)
        print(number, begin, end, at)
        if at >= 0:
            file.seek(at)
            file.write(y)
        file.seek(end)
    except OSError as error:
        print(number, error)
with open(sys.argv[2], "wb") as file:
    file.write(y)
