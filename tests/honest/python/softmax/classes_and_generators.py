# A host in classes, generators, enumerations and context managers.
import contextlib
import enum
import sys
import time

import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + start + column, weights / tl.sum(weights, 0), mask=column < columns)


class Size(enum.Enum):
    SMALL = 4
    LARGE = 8

    @classmethod
    def of(cls, columns):
        return cls.LARGE if columns > 512 else cls.SMALL


class Timer:
    def __enter__(self):
        self.began = time.perf_counter()
        return self

    def __exit__(self, *error):
        self.seconds = time.perf_counter() - self.began
        return False


def parts(rows, most):
    for first in range(0, rows, most):
        yield first, min(most, rows - first)


@contextlib.contextmanager
def reported(what):
    with Timer() as timer:
        yield
    print(f"{what}: {timer.seconds >= 0}", file=sys.stderr)


class Softmax:
    def __init__(self, rows, columns):
        self.rows, self.columns = rows, columns
        self._block = triton.next_power_of_2(columns)

    def __call__(self, x, y):
        for first, count in parts(self.rows, 64):
            warps = Size.of(self.columns).value
            softmax[(count,)](x[first], y[first], self.columns, BLOCK=self._block, num_warps=warps)

    def __repr__(self):
        return f"Softmax({self.rows}, {self.columns})"


def solve(x, y, rows, columns):
    with reported("all"):
        Softmax(rows, columns)(x, y)
