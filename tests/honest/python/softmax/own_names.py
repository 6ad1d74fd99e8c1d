# Variables with the names of modules, infinity as a start, a dataclass matched by place, and steps chosen by name.
import copy
import math
from dataclasses import dataclass

import triton
import triton.language as tl


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


def without_first(values):
    copy = list(values)
    copy.pop(0)
    return copy


def report(what, time):
    print(f"{what}: {time}")


def launch(x, y):
    softmax[(len(x),)](x, y, x.shape[1], BLOCK=block_of(Matrix(*x.shape)))


STEPS = {"launch": launch, "report": report}


def solve(x, y, rows, columns):
    steps = copy.copy(STEPS)
    steps["launch"](x, y)
    steps["report"]("columns", without_first(x.shape))
