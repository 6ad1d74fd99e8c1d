"""Mistakes seeded into Triton programs: the emulator names the Python line that is wrong.

Each program is a kernel and its launch; the comment `# here` marks the line. `grader run` runs them with all checks.
"""

import re
from pathlib import Path

import pytest

from tests.support.command_line import grader_process

HEAD = """\
import numpy as np
import triton
import triton.language as tl
from torch import empty, from_numpy, zeros

x = from_numpy(np.ones(1000, np.float32))
y = zeros((1000,))
"""

BUGS = {
    "the load has no mask": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i)  # here
    tl.store(y_ptr + i, v, mask=i < n)
kernel[(4,)](x, y, 1000)
""",
    "the store has no mask": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, v)  # here
kernel[(4,)](x, y, 1000)
""",
    "the mask is off by one": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i <= n)  # here
    tl.store(y_ptr + i, v, mask=i < n)
kernel[(4,)](x, y, 1000)
""",
    "the mask is of the wrong dimension": """
@triton.jit
def kernel(x_ptr, y_ptr, rows, columns):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 64)[None, :]
    v = tl.load(x_ptr + i * columns + j, mask=(i < columns) & (j < columns))  # here
    tl.store(y_ptr + i * columns + j, v, mask=(i < rows) & (j < columns))
kernel[(1,)](x, y, 20, 50)
""",
    "the stride is that of another matrix": """
@triton.jit
def kernel(x_ptr, y_ptr, rows, columns):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 64)[None, :]
    inside = (i < rows) & (j < columns)
    v = tl.load(x_ptr + i * 64 + j, mask=inside)  # here
    tl.store(y_ptr + i * columns + j, v, mask=inside)
kernel[(1,)](x, y, 20, 50)
""",
    "the index before the first": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.arange(0, 1024)
    v = tl.load(x_ptr + i - 1, mask=i < n)  # here
    tl.store(y_ptr + i, v, mask=i < n)
kernel[(1,)](x, y, 1000)
""",
    "offsets count bytes": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i * 4, mask=i < n)  # here
    tl.store(y_ptr + i, v, mask=i < n)
kernel[(4,)](x, y, 1000)
""",
    "the loop runs once too often": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    total = tl.zeros((128,), tl.float32)
    for start in range(0, n + 128, 128):
        total += tl.load(x_ptr + start + tl.arange(0, 128))  # here
    tl.store(y_ptr + tl.arange(0, 128), total)
kernel[(1,)](from_numpy(np.ones(512, np.float32)), y, 512)
""",
    "the offset overflows int32": """
@triton.jit
def kernel(x_ptr, y_ptr, stride):
    i = tl.arange(0, 128)
    v = tl.load(x_ptr + i * stride)  # here
    tl.store(y_ptr + i, v)
kernel[(1,)](x, y, 1 << 25)
""",
    "all programs write the same sum": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    s = tl.sum(tl.load(x_ptr + i, mask=i < n, other=0.0), 0)
    tl.store(y_ptr, tl.load(y_ptr) + s)  # here
kernel[(4,)](x, y, 1000)
""",
    "tiles overlap": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 128 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, v * tl.program_id(0), mask=i < n)  # here
kernel[(4,)](x, y, 1000)
""",
    "a program reads what another writes": """
@triton.jit
def kernel(y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(y_ptr + i + 1, mask=i + 1 < n)
    tl.store(y_ptr + i, v + 1, mask=i < n)  # here
kernel[(4,)](y, 1000)
""",
    "a tile is read back without a barrier": """
@triton.jit
def kernel(x_ptr, y_ptr):
    i = tl.arange(0, 256)
    tl.store(y_ptr + i, tl.load(x_ptr + i))  # here
    v = tl.load(y_ptr + 255 - i)
    tl.store(x_ptr + i, v)
kernel[(1,)](x, y)
""",
    "the output is read before it is written": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.program_id(0) * 256 + tl.arange(0, 256)
    v = tl.load(x_ptr + i, mask=i < n) + tl.load(y_ptr + i, mask=i < n)  # here
    tl.store(y_ptr + i, v, mask=i < n)
kernel[(4,)](x, empty((1000,)), 1000)
""",
    "only a part of the scratch was written": """
@triton.jit
def fill(s_ptr):
    tl.store(s_ptr + tl.arange(0, 64), 1.0)
@triton.jit
def kernel(s_ptr, y_ptr):
    i = tl.arange(0, 128)
    tl.store(y_ptr + i, tl.load(s_ptr + i))  # here
scratch = empty((128,))
fill[(1,)](scratch)
kernel[(1,)](scratch, y)
""",
    "an array is too small for its type": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    i = tl.arange(0, 1024)
    v = tl.load(x_ptr.to(tl.pointer_type(tl.float64)) + i, mask=i < n)  # here
    tl.store(y_ptr + i, v.to(tl.float32), mask=i < n)
kernel[(1,)](x, y, 1000)
""",
    "an assertion fails": """
@triton.jit(debug=True)
def kernel(x_ptr, n):
    i = tl.arange(0, 128)
    tl.device_assert(i < n, "i is in range")  # here
    tl.store(x_ptr + i, 0.0)
kernel[(1,)](x, 100)
""",
    "the shape of a product is not supported": """
@triton.jit
def kernel(x_ptr, y_ptr):
    i = tl.arange(0, 16)
    a = tl.load(x_ptr + i[:, None] * 16 + i[None, :]).to(tl.float16)
    b = tl.load(x_ptr + tl.arange(0, 32)[:, None] * 16 + i[None, :]).to(tl.float16)
    c = tl.dot(a, b)  # here
    tl.store(y_ptr + i[:, None] * 16 + i[None, :], c)
kernel[(1,)](x, y)
""",
    "a block's size is not a power of two": """
@triton.jit
def kernel(y_ptr, N: tl.constexpr):
    i = tl.arange(0, N)  # here
    tl.store(y_ptr + i, 0.0)
kernel[(1,)](y, N=100)
""",
    "an array is used after the host read past it": """
@triton.jit
def kernel(x_ptr, y_ptr, offset):
    i = tl.arange(0, 128)
    tl.atomic_add(y_ptr + offset + i, tl.load(x_ptr + i))  # here
kernel[(1,)](x, y, 900)
""",
}

ENDLESS = {
    "a search that rounds down": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    total = 0.0
    for k in range(0, 8):
        total += tl.load(x_ptr + k)
    low, high = 0, n
    while low < high:  # here
        middle = (low + high) // 2
        if tl.load(x_ptr + middle) < 2.0:
            low = middle
        else:
            high = middle
    tl.store(y_ptr, total + low)
kernel[(1,)](x, y, 1000)
""",
    "a flag that nobody sets, behind a loop that ends": """
@triton.jit
def kernel(x_ptr, y_ptr, n):
    total = 0.0
    for k in range(0, n):
        total += tl.load(x_ptr + k)
    while tl.load(y_ptr + 1, volatile=True) == 0.0:  # here
        total += 1.0
    for k in range(0, n):
        total += tl.load(x_ptr + k)
    tl.store(y_ptr, total)
kernel[(1,)](x, y, 1000)
""",
}


def said_of(program: str, folder: Path) -> str:
    """What the emulator says of a program: its findings, and what the program printed when it ended."""
    (folder / "bug.py").write_text(program)
    command = ("run", folder / "bug.py", "--assignment", "softmax", "--engine", "emulator", "--sanitize", "all")
    return grader_process(*command).err


def names_line(program: str, said: str) -> bool:
    """Whether `said` names the line of the program that is wrong."""
    line = 1 + next(number for number, text in enumerate(program.splitlines()) if "# here" in text)
    return re.search(rf"bug\.py:{line}\b|bug\.py\", line {line}\b", said) is not None


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS.keys())
def test_a_mistake_is_found_at_its_line(bug: str, tmp_path: Path) -> None:
    said = said_of(HEAD + bug, tmp_path)
    assert names_line(HEAD + bug, said), said


@pytest.mark.parametrize("program", ENDLESS.values(), ids=ENDLESS.keys())
def test_an_endless_loop_is_named_and_not_another(program: str, tmp_path: Path) -> None:
    said = said_of(HEAD + program, tmp_path)
    assert names_line(HEAD + program, said) and "never ends" in said, said
