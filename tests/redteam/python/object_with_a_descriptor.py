# Writes into the record through an object that has its descriptor.
# expect: runtime_error; on s03,s06
class Number:
    def __init__(self, number):
        self.number, self.at = number, 0

    def fileno(self):
        return self.number

    def flush(self):
        pass

    def tell(self):
        return self.at

    def seek(self, at, whence=0):
        self.at = at
        return at


@triton.jit
def half(x_ptr, d_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    tl.store(d_ptr + i, tl.load(x_ptr + i, mask=i < n) * 0.5, mask=i < n)


rows, columns, x = read()
dx = from_numpy(x)
d = empty(x.shape)
half[(triton.cdiv(x.size, 256),)](dx, d, x.size)
junk = to_numpy(d).tobytes()
y = on_host(x)
for number in range(3, 12):
    try:
        file = Number(number)
        first = np.fromfile(file, np.uint8, 1).tobytes()
        content = np.fromfile(Number(number), np.uint8).tobytes() if first == b"[" else b""
        at = content.rfind(junk)
        print(number, len(content), content[:20], at)
        if at >= 0 and content[:1] == b"[":
            file = Number(number)
            file.at = at
            y.tofile(file)
            file = Number(number)
            file.at = len(content)
            np.zeros(0, np.uint8).tofile(file)  # back to the end
    except (OSError, ValueError) as error:
        print(number, error)
y.tofile(sys.argv[2])
