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


@triton.jit(do_not_specialize=["count", "factor"])  # type: ignore[untyped-decorator]
def copy_kernel(  # type: ignore[no-untyped-def]
    target, source, count, lengths, target_strides, source_strides, factor, BLOCK: tl.constexpr
):
    """Copy element i of `count` in row-major order, times `factor` unless that is None. Strides begin with that of the
    last dimension; `lengths`, too, and lack the first dimension. Both are `_odd`."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < count
    to, at = i * 0, i * 0
    for axis in tl.static_range(len(lengths)):
        n = lengths[axis] // 2 - 1
        to += (i % n) * (target_strides[axis] // 2 - 1)
        at += (i % n) * (source_strides[axis] // 2 - 1)
        i //= n
    to += i * (target_strides[len(lengths)] // 2 - 1)
    at += i * (source_strides[len(lengths)] // 2 - 1)
    x = tl.load(source + at, mask=inside)
    if factor is not None:
        x = x.to(tl.float32) * factor
    tl.store(target + to, x.to(target.dtype.element_ty), mask=inside)


def copy_elements(
    target: object, source: object, dimensions: Iterable[tuple[int, int, int]], factor: float | None = None
) -> None:
    """Copy from one tensor to another, with (length, stride in `target`, stride in `source`) of each dimension. Raises
    ValueError for tensors of too many dimensions."""
    joined = _joined(dimensions)
    if len(joined) > MAX_DIMENSIONS:
        raise ValueError(f"a tensor of {len(joined)} strided dimensions cannot be copied: at most {MAX_DIMENSIONS}")
    padded = [*reversed(joined), *[(1, 0, 0)] * (MAX_DIMENSIONS - len(joined))]
    lengths, to, at = zip(*padded, strict=True)
    count = math.prod(lengths)
    copy_kernel[(triton.cdiv(count, _BLOCK),)](
        target, source, count, _odd(lengths[:-1]), _odd(to), _odd(at), factor, BLOCK=_BLOCK
    )


def _odd(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """2n + 3 of each number. In a tuple, Triton compiles a kernel anew for each number that is 1 or a multiple of 16;
    these are neither, so one kernel serves all shapes."""
    return tuple(2 * each + 3 for each in numbers)


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
