# Options read with argparse, a file opened with pathlib, a header unpacked with struct.
import argparse
import pathlib
import struct

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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    content = options.input.read_bytes()
    rows, columns = struct.unpack_from("<ii", content)
    x = from_numpy(np.frombuffer(content, "<f4", offset=8).reshape(rows, columns))
    y = empty((rows, columns), "float32")
    softmax[(rows,)](x, y, columns, BLOCK=triton.next_power_of_2(columns))
    options.output.write_bytes(to_numpy(y).tobytes())
    if options.verbose:
        print(f"{rows} rows")
