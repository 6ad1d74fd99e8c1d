# What the hostile programs in Python share: reading and writing, a right answer computed on the CPU, an honest kernel,
# and how an attack reports that it worked. The runner puts this text before each of them.
#
# An attack's first line says what it tries, its second what must become of it when the course's rules for Python are
# switched off, in the words of programs/hostile.h. `refused`: with these rules it is not even run.
import os
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros

CANARY = "/tmp/redteam-canary"
BUILDING = os.environ.get("GRADER_PYTHON_ENGINE", "").startswith("compile")


def bypassed(what):
    print("BYPASSED:", what, flush=True)


def read_input():
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    return np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)


def write(values):
    np.asarray(values, np.float32).tofile(sys.argv[2])


def right_answer():
    x = read_input()
    weights = np.exp(x - x.max(1, keepdims=True))
    return weights / weights.sum(1, keepdims=True)


def write_zeros():
    write(np.zeros(read_input().shape))


@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    m = -float("inf")
    s = 0.0
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + column, mask=column < columns, other=-float("inf"))
        new = tl.maximum(m, tl.max(x, 0))
        s = s * tl.exp(m - new) + tl.sum(tl.exp(x - new), 0)
        m = new
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + column, mask=column < columns)
        tl.store(y_ptr + row + column, tl.exp(x - m) / s, mask=column < columns)


def launch_softmax():
    x = read_input()
    rows, columns = x.shape
    y = empty(x.shape)
    softmax_kernel[(rows,)](from_numpy(x), y, columns, BLOCK=1024)
    return y


@triton.jit
def decoy_kernel(y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 0.0, mask=i < n)


def launch_decoy():
    y = empty(read_input().shape)
    decoy_kernel[(triton.cdiv(y.numel(), 1024),)](y, y.numel(), BLOCK=1024)
    return y


@triton.jit
def decoy(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        tl.store(y_ptr + row * columns + column, x * 2.0, mask=column < columns)


@triton.jit
def final(x_ptr, q_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    level = 64.0 + tl.load(q_ptr + row).to(tl.float32) * 0.0000152587890625
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * columns + column, mask=column < columns, other=0.0)
        tl.store(y_ptr + row * columns + column, tl.exp(x - level), mask=column < columns)


def read():
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    return rows, columns, np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)


def levels(x):  # the processor's work: maximum, exponentials, row sums
    x = x.astype(np.float64)
    m = x.max(1)
    level = m + np.log(np.exp(x - m[:, None]).sum(1))
    return [int(q) for q in np.clip(np.rint((level - 64) * 65536), 0, (1 << 22) - 1)]


def on_host(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True)).astype(np.float32)
