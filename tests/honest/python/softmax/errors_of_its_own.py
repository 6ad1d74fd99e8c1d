# Checks its arguments and its input, with messages and handlers.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy

@triton.jit
def softmax(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * columns
    column = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + start + column, mask=column < columns, other=-float("inf"))
    weights = tl.exp(x - tl.max(x, 0))
    tl.store(y_ptr + start + column, weights / tl.sum(weights, 0), mask=column < columns)


class BadInput(ValueError):
    """The input is not what it should be."""


def read(path):
    try:
        with open(path, "rb") as file:
            rows, columns = (int(n) for n in np.fromfile(file, np.int32, 2))
            values = np.fromfile(file, np.float32)
    except OSError as error:
        raise BadInput(f"{path}: {error}") from error
    if values.size != rows * columns:
        raise BadInput(f"{path}: {values.size} values, {rows * columns} expected")
    return values.reshape(rows, columns)


def main(arguments):
    if len(arguments) != 2:
        print("usage: softmax.py INPUT OUTPUT", file=sys.stderr)
        return 2
    try:
        x = read(arguments[0])
    except BadInput as error:
        print(error, file=sys.stderr)
        return 1
    rows, columns = x.shape
    y = empty(x.shape)
    try:
        softmax[(rows,)](from_numpy(x), y, columns, BLOCK=triton.next_power_of_2(columns))
    finally:
        print("done")
    to_numpy(y).tofile(arguments[1])
    return 0


sys.exit(main(sys.argv[1:]))
