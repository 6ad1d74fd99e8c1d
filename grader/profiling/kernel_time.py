"""Assigns GPU time to kernels for the occupancy score: each moment counts for the running kernel with the lowest
occupancy.

Otherwise a kernel that is launched only for its occupancy could sleep on a second stream, in warp slots that the other
kernels leave free, and get a share of the time without slowing them down. By this rule it counts only in the time that
it adds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from grader.programs.trace import KernelEvent


def counted_ns(kernels: Iterable[KernelEvent], occupancy: Mapping[str, float]) -> dict[str, int]:
    """Nanoseconds that count for each kernel named in `occupancy` (0..1); other kernels are ignored."""
    ours = [kernel for kernel in kernels if kernel.name in occupancy]
    times = dict.fromkeys(occupancy, 0)
    running: Counter[str] = Counter()
    before = 0
    for now, begins, name in _edges(ours):
        if running:
            times[min(running, key=occupancy.__getitem__)] += now - before
        before = now
        running[name] += 1 if begins else -1
        if not running[name]:
            del running[name]
    return times


def _edges(kernels: Sequence[KernelEvent]) -> list[tuple[int, bool, str]]:
    """(ns, whether the kernel begins, its name) for every beginning and end of a kernel, in order of time. At equal
    times, ends come first, so that two consecutive kernels do not overlap."""
    begins = ((start, True, kernel.name) for kernel in kernels for start in kernel.times[:, 0].tolist())
    ends = ((end, False, kernel.name) for kernel in kernels for end in kernel.times[:, 1].tolist())
    return sorted(chain(begins, ends))


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """The weighted median of (value, weight) pairs: the least value at which half of the weight is reached.

    >>> weighted_median([(0.9, 2.0), (0.1, 1.0), (0.5, 1.0)])
    0.5
    """
    half, so_far = sum(weight for _, weight in values) / 2, 0.0
    for value, weight in sorted(values):
        so_far += weight
        if so_far >= half:
            return value
    raise ValueError("weighted_median needs at least one value.")
