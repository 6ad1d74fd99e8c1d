# Has a dataclass open its record's descriptor, which is then opened by none of the program's own lines.
# expect: runtime_error; on s03,s06
from dataclasses import dataclass, field
from functools import partial

rows, columns, x = read()
y = empty(x.shape)
decoy[(rows,)](from_numpy(x), y, columns, BLOCK=512)
fetched = to_numpy(y).tobytes()
answer = on_host(x)
for number in range(3, 12):
    try:

        @dataclass
        class Opened:
            file: object = field(default_factory=partial(open, number, "r+b", buffering=0, closefd=False))

        file = Opened().file
        end = file.seek(0, 1)
        file.seek(0)
        content = file.read(1 << 25)
        if fetched in content:
            file.seek(content.rfind(fetched))
            file.write(answer.tobytes())
            bypassed("its record is open")
        file.seek(end)
    except OSError as error:
        print(number, error)
write(answer)
