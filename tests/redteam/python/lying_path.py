# Opens its own memory by a path that lies about itself, and has what it copies to the device not followed meanwhile.
# expect: no_output | runtime_error | wrong_answer; on s03,s06
import struct


class Lying(str):
    def startswith(self, *_):
        return True

    def partition(self, _):
        return "tmp", "", ""

    def __getitem__(self, _):
        return "/"


def words(file, address, count=1):
    file.seek(address)
    return struct.unpack(f"<{count}Q", file.read(8 * count))


def slot(file, dictionary, key):
    """Where a dictionary of Python's keeps the address of a value."""
    keys = words(file, dictionary + 32)[0]
    file.seek(keys + 9)
    log2_bytes, plain = file.read(2)
    each, at = (16, 0) if plain else (24, 8)
    first = keys + 32 + (1 << log2_bytes) + at
    places = [first + each * i for i in range(words(file, keys + 24)[0])]
    return next(place + 8 for place in places if words(file, place)[0] == id(key))


rows, columns, x = read()
y = empty(x.shape)
with open(Lying("/proc/self/mem"), "r+b", buffering=0) as file:
    bypassed("its own memory is open")
    module = words(file, slot(file, words(file, id(to_numpy) + 16)[0], "provenance"))[0]
    follower = slot(file, words(file, module + 16)[0], "follower")
    before = file.seek(follower) and file.read(8)
    file.seek(follower)
    file.write(struct.pack("<Q", id(None)))
    acc = from_numpy(np.array(levels(x), np.int32))
    file.seek(follower)
    file.write(before)
final[(rows,)](from_numpy(x), acc, y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
