"""The kernel behind copies that are more than a run of bytes: between strides, between types, and times a number.

PyTorch has kernels for these, too, and wrappers around Triton kernels use them: `contiguous()`, `to(dtype)`,
`x[a:b] = y`. Everything else that computes is left to the submission's own kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import triton
import triton.language as tl

_BLOCK = 1024
MAX_DIMENSIONS = 5
"""After neighbouring dimensions that lie one in the other were joined."""
_NUMBERS = ["count", "n1", "n2", "n3", "n4", *(f"{side}{axis}" for side in "ts" for axis in range(MAX_DIMENSIONS))]


@triton.jit(do_not_specialize=[*_NUMBERS, "factor"])  # type: ignore[untyped-decorator]
def copy_kernel(  # type: ignore[no-untyped-def]
    target, source, count, n1, n2, n3, n4, t0, t1, t2, t3, t4, s0, s1, s2, s3, s4, factor,
    SCALED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Element i of `count` in row-major order; n1 to n4 are the lengths of all dimensions but the first."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    to, at = (i % n4) * t4, (i % n4) * s4
    i //= n4
    to, at = to + (i % n3) * t3, at + (i % n3) * s3
    i //= n3
    to, at = to + (i % n2) * t2, at + (i % n2) * s2
    i //= n2
    to, at = to + (i % n1) * t1, at + (i % n1) * s1
    i //= n1
    x = tl.load(source + at + i * s0, mask=inside)
    if SCALED:
        x = x.to(tl.float32) * factor
    tl.store(target + to + i * t0, x.to(target.dtype.element_ty), mask=inside)


def copy_elements(
    target: object, source: object, dimensions: Iterable[tuple[int, int, int]], factor: float | None = None
) -> None:
    """Copy from one tensor to another, with (length, stride in `target`, stride in `source`) of each dimension. Raises
    ValueError for tensors of too many dimensions."""
    joined = _joined(dimensions)
    if len(joined) > MAX_DIMENSIONS:
        raise ValueError(f"a tensor of {len(joined)} strided dimensions cannot be copied: at most {MAX_DIMENSIONS}")
    padded = [(1, 0, 0)] * (MAX_DIMENSIONS - len(joined)) + joined
    lengths, to, at = zip(*padded, strict=True)
    count = math.prod(lengths)
    copy_kernel[(triton.cdiv(count, _BLOCK),)](
        target, source, count, *lengths[1:], *to, *at, 0.0 if factor is None else factor,
        SCALED=factor is not None, BLOCK=_BLOCK,
    )  # fmt: skip


def _joined(dimensions: Iterable[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The same elements in fewer dimensions."""
    joined: list[tuple[int, int, int]] = []
    for length, to, at in dimensions:
        if length == 1:
            continue
        if joined and joined[-1][1:] == (length * to, length * at):
            joined[-1] = (joined[-1][0] * length, to, at)
        else:
            joined.append((length, to, at))
    return joined
