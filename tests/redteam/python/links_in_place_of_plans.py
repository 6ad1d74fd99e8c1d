# links and pipes where the recorder's files are expected
# expect: compile_error
import atexit
import json
import os
from pathlib import Path

import triton
import triton.language as tl


@triton.jit
def copy(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + i, tl.load(x + i, mask=i < n), mask=i < n)


def request():
    words = Path("/proc/self/cmdline").read_bytes().decode().split("\0")
    return json.loads(Path(next(word for word in words if word.endswith("request.json"))).read_text())


def solve(x, y, rows, columns):
    out = Path(request()["out"])
    os.symlink("/etc/passwd", out / "0.json")
    os.mkfifo(out / "1.json")
    os._exit(0)
