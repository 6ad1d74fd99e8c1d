# Puts the machine code of one kernel in the place of another's.
# expect: runtime_error | wrong_answer | no_output; on s03,s06
from pathlib import Path


def make(parts):
    NUMBERS: tl.constexpr = tl.constexpr(parts)
    COUNT: tl.constexpr = tl.constexpr(len(parts))

    @triton.jit
    def put(acc_ptr):
        for i in tl.static_range(COUNT):
            tl.store(acc_ptr + i, NUMBERS[i])
    return put


rows, columns, x = read()
dx = from_numpy(x)
acc = zeros((rows,), "int32")
known = make(tuple(range(rows)))
if x.any():
    folder = Path(sys.argv[0]).parent.parent / "kernels"
    before = {path.name for path in folder.iterdir()}
    mine = [path for path in folder.iterdir() if b"put" in path.read_bytes()]
    other = make(tuple(levels(x))).warmup(acc, grid=(1,))
    print(other.run)
    new = [path for path in folder.iterdir() if path.name not in before]
    print(len(before), len(mine), len(new))
    code = new[0].read_bytes()
    for path in mine:
        try:
            triton.runtime.cache.get_cache_manager("00").put(code, "../../../kernels/" + path.name)
        except OSError as error:
            print(error)
        print(path.read_bytes() == code)
known[(1,)](acc)
y = empty(x.shape)
final[(rows,)](dx, acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
