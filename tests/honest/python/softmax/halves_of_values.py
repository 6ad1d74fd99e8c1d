# The upper and the lower 16 bits of all values as two arrays, there and back.
import sys

import numpy as np
import triton
import triton.language as tl
from device_arrays import empty, from_numpy, to_numpy, zeros


@triton.jit
def joined(hi_ptr, lo_ptr, at, mask):
    hi = tl.load(hi_ptr + at, mask=mask, other=0xFF80).to(tl.uint32)
    lo = tl.load(lo_ptr + at, mask=mask, other=0).to(tl.uint32)
    return ((hi << 16) | lo).to(tl.float32, bitcast=True)


@triton.jit
def softmax_planes(hi_ptr, lo_ptr, yh_ptr, yl_ptr, columns, BLOCK: tl.constexpr):
    base = tl.program_id(0).to(tl.int64) * columns
    at = tl.arange(0, BLOCK)
    top = -float("inf")
    for start in range(0, columns, BLOCK):
        top = tl.maximum(top, tl.max(joined(hi_ptr, lo_ptr, base + start + at, start + at < columns), 0))
    total = 0.0
    for start in range(0, columns, BLOCK):
        total += tl.sum(tl.exp(joined(hi_ptr, lo_ptr, base + start + at, start + at < columns) - top), 0)
    for start in range(0, columns, BLOCK):
        inside = start + at < columns
        y = tl.exp(joined(hi_ptr, lo_ptr, base + start + at, inside) - top) / total
        b = y.to(tl.uint32, bitcast=True)
        tl.store(yh_ptr + base + start + at, (b >> 16).to(tl.uint16), mask=inside)
        tl.store(yl_ptr + base + start + at, (b & 0xFFFF).to(tl.uint16), mask=inside)


def block_for(columns):
    return min(1024, triton.next_power_of_2(max(columns, 16)))


def main():
    rows, columns = (int(n) for n in np.fromfile(sys.argv[1], np.int32, 2))
    x = np.fromfile(sys.argv[1], np.float32, offset=8).reshape(rows, columns)

    bits = x.view(np.uint32)
    hi = (bits >> 16).astype(np.uint16)
    lo = (bits & 0xFFFF).astype(np.uint16)
    yh, yl = zeros(x.shape, "uint16"), zeros(x.shape, "uint16")
    softmax_planes[(rows,)](from_numpy(hi), from_numpy(lo), yh, yl, columns, BLOCK=block_for(columns))
    out = (to_numpy(yh).astype(np.uint32) << 16) | to_numpy(yl)
    out.view(np.float32).tofile(sys.argv[2])


main()
