# Appends a heading with an infinite size to its record, for the grader's reader to fail on.
# expect: runtime_error; on s03,s06
from dataclasses import dataclass, field
from functools import partial

rows, columns, x = read()
y = empty(x.shape)
final[(rows,)](from_numpy(x), from_numpy(np.array(levels(x), np.int32)), y, columns, BLOCK=512)
to_numpy(y).tofile(sys.argv[2])
for number in range(3, 12):
    try:

        @dataclass
        class Opened:
            file: object = field(default_factory=partial(open, number, "r+b", buffering=0, closefd=False))

        file = Opened().file
        end = file.seek(0, 1)
        file.seek(0)
        begin = file.read(1)
        file.seek(end)
        if begin == b"[":
            file.write(b'{"kind": "arguments", "type": "", "size": Infinity, "bytes": 0, "numbers": [], "line": 1}\n')
            bypassed("its record is open")
    except OSError as error:
        print(number, error)
