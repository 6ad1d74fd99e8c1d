"""Attention in half precision, in Triton.

    grader run half.py INPUT OUTPUT
    grader check half.py

This file reads INPUT, sends it to the device, calls your kernel, and writes OUTPUT. The kernel is yours: look for TODO.
The code below defines types, layouts and masks. As it stands, the program runs and writes zeros, which fails
nearly every test.

Theory of operation

    TODO: replace these lines with yours, in a few sentences. What does one program compute? Which tiles does it load,
    what does it keep from one tile of keys to the next, and what do its masks keep out?
"""

import math
import sys
from dataclasses import dataclass

import numpy as np
import triton
import triton.language as tl
from device_arrays import from_numpy, to_numpy, zeros

# ------------------------------------------------------------------------------------------------------ kernel

FLOAT16, BFLOAT16, E4M3, E5M2 = range(4)  # the header's type
NO_LIMIT = 1 << 30


# Converts a loaded tile for tl.dot: 8-bit floats, which are loaded as uint8, become float16. TYPE is the header's type.
@triton.jit
def widened(x, TYPE: tl.constexpr):
    if TYPE == 3:  # e5m2 is the upper half of a float16
        x = (x.to(tl.uint16) << 8).to(tl.float16, bitcast=True)
    elif TYPE == 2:  # e4m3 has 4 bits of exponent, with bias 7 instead of 15, and 3 of mantissa
        bits = x.to(tl.uint16)
        x = (((bits & 0x80) << 8) | ((bits & 0x7F) << 7)).to(tl.float16, bitcast=True) * 256.0
    return x


# Q, K, V and O are [batch, head, row, column] with any strides, except that the column stride is 1. Query head h reads
# key head h // group. Query i sees the keys from i + keys - queries - behind to i + keys - queries + ahead, both
# included.
@triton.jit
def attention(
    q_ptr, k_ptr, v_ptr, o_ptr,
    q_batch, q_head, q_row, k_batch, k_head, k_row, v_batch, v_head, v_row, o_batch, o_head, o_row,
    queries, keys, heads, group, behind, ahead, scale,
    TYPE: tl.constexpr, D: tl.constexpr, DP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    # TODO: your kernel. A start: program (tl.program_id(0), tl.program_id(1)) takes BM queries of head tl.program_id(1)
    # % heads of batch tl.program_id(1) // heads, and goes through the keys BN at a time. DP is D rounded up to a power
    # of two, which tl.arange requires. Lengths need not be a multiple of your tile; a query that sees no key gets
    # zeros.
    pass


def launch_attention(h, q, k, v, o):
    # TODO: a grid and tiles that fit your kernel, perhaps num_warps=..., num_stages=...
    behind = NO_LIMIT if h.window < 0 else h.window
    ahead = 0 if h.causal else NO_LIMIT
    attention[(1, 1)](
        q, k, v, o, *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *o.stride()[:3],
        h.queries, h.keys, h.query_heads, h.query_heads // h.key_heads, behind, ahead, h.scale,
        TYPE=h.type, D=h.d, DP=triton.next_power_of_2(h.d), BM=32, BN=32,
    )  # fmt: skip


# -------------------------------------------------------------------------------------------------------- host


@dataclass(frozen=True)
class Header:
    """The header of INPUT."""

    batches: int
    query_heads: int
    key_heads: int
    queries: int
    keys: int
    d: int
    type: int
    causal: int
    window: int
    layout: int
    scale: float

    def part_shapes(self):
        """The shapes of the tensors in INPUT, in order."""
        B, Hq, Hk, Nq, Nk, d = self.batches, self.query_heads, self.key_heads, self.queries, self.keys, self.d
        separate = [(B, Hq, Nq, d), (B, Hk, Nk, d), (B, Hk, Nk, d)]
        return [separate, [(B, Nq, 3, Hq, d)], [(B, Nq, Hq, d), (B, Nk, 2, Hk, d)]][self.layout]

    def query_key_value(self, parts):
        """Views of these tensors as Q, K and V, each [B, H, N, d]."""
        if self.layout == 0:
            return parts
        packed = parts[-1].transpose(0, 2)  # [3 or 2, N, B, H, d]
        rest = [packed[slot].transpose(0, 1).transpose(1, 2) for slot in range(packed.shape[0])]
        return rest if self.layout == 1 else [parts[0].transpose(1, 2), *rest]


def read(path):
    """The header, and Q, K and V on the device. float16 and bfloat16 keep their type, 8-bit floats become uint8."""
    integers = np.fromfile(path, np.int32, 10).tolist()
    h = Header(*integers, scale=float(np.fromfile(path, np.float32, 1, offset=40)[0]))
    values = np.fromfile(path, np.uint16 if h.type < E4M3 else np.uint8, offset=44)
    parts = []
    for shape in h.part_shapes():
        part, values = np.split(values, [math.prod(shape)])
        parts.append(from_numpy(part.reshape(shape)).view(("float16", "bfloat16", "uint8", "uint8")[h.type]))
    return h, h.query_key_value(parts)


def main():
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} INPUT OUTPUT")
    h, (q, k, v) = read(sys.argv[1])
    rows = (h.query_heads, h.queries) if h.layout == 0 else (h.queries, h.query_heads)
    o = zeros((h.batches, *rows, h.d), "bfloat16" if h.type == BFLOAT16 else "float16")
    launch_attention(h, q, k, v, o if h.layout == 0 else o.transpose(1, 2))
    to_numpy(o.view("uint16")).tofile(sys.argv[2])


if __name__ == "__main__":
    main()
