# Variables with the names of modules, infinity as a start, a dataclass matched by place, and steps chosen by name.
import copy
import math
import sys
import time
from dataclasses import dataclass

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy


@dataclass
class Matrix:
    rows: int
    columns: int


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
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


def block_of(matrix):
    match matrix:
        case Matrix(1, columns):
            return min(1024, triton.next_power_of_2(columns))
        case Matrix(_, columns):
            best, block = math.inf, 0
            for size in (128, 256, 512):
                if triton.cdiv(columns, size) * size < best:
                    best, block = triton.cdiv(columns, size) * size, size
            return block


def largest(y):
    best = np.zeros(len(y))
    for row, values in enumerate(y):
        best[row] = values.max()
    return best


def without_small(values):
    copy = values.copy()
    copy[copy < 1e-6] = 0
    return copy


def report(what, time):
    print(f"{what}: {time * 1e3:.3f} ms")


def read(path):
    rows, columns = np.fromfile(path, np.int32, 2).tolist()
    return np.fromfile(path, np.float32, offset=8).reshape(rows, columns)


STEPS = {"read": read, "write": lambda path, y: y.tofile(path)}
args = copy.copy(sys.argv)
begin = time.perf_counter()
try:
    x = STEPS["read"](args[1])
except (IndexError, OSError):
    sys.exit("usage: softmax.py INPUT OUTPUT")
y = empty(x.shape)
softmax[(len(x),)](from_numpy(x), y, x.shape[1], BLOCK=block_of(Matrix(*x.shape)))
STEPS["write"](args[2], to_numpy(y))
report("all", time.perf_counter() - begin)
print(largest(to_numpy(y))[:4], np.count_nonzero(without_small(to_numpy(y))))
