"""Finds slips: places where a source contradicts itself, which are mistakes no matter what the values are.

A sum of products in an int, a maximum that starts above every score, or results that are copied back before the launch
are wrong in every program. Slips are looked for only after a program has failed. The less certain ones explain an
output only if it equals that of no known mistake. The search is in the text, without a parser of C++.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from grader.checking.host_slips import HostSlips
from grader.checking.index_slips import IndexSlips
from grader.checking.kernel_slips import KernelSlips
from grader.checking.suspects import Slip
from grader.sandbox.bounded import Bounded, Exceeded

_examiner = Bounded(wall_s=15, memory_bytes=1 << 30)

Which = Literal["host", "sure", "all"]
"""`host`: slips of the host, which can cause bad accesses and unwritten memory. `sure`: these, and others that are
mistakes in every program. `all`: also suspicious places, which explain an output that nothing else explains."""


def find_slip(files: Sequence[tuple[str, bytes]], which: Which) -> Slip | None:
    """The first slip in a submission's files; None if there is none."""
    return _first_slip(tuple(files), which)


@lru_cache(maxsize=64)  # every failed test of a submission asks, and hostile text takes the whole time limit
def _first_slip(files: tuple[tuple[str, bytes], ...], which: Which) -> Slip | None:
    try:
        return _examiner.call(_find_slip, files, which)
    except Exceeded:
        return None


def _find_slip(files: tuple[tuple[str, bytes], ...], which: Which) -> Slip | None:
    return next(Slips(files).slips(which), None)


class Slips(HostSlips, IndexSlips, KernelSlips):
    """Finds the slips in a submission, the surest first."""

    def slips(self, which: Which) -> Iterator[Slip]:
        yield from self._header_order()
        yield from self._early_copies()
        yield from self._sizes_in_values()
        if which != "host":
            yield from self._whole_numbers()
            yield from self._high_maxima()
            yield from self._low_maxima()
            yield from self._whole_quotients()
            yield from self._narrow_guards()
            yield from self._mixed_axes()
        if which == "all":
            yield from self._exponents()
            yield from self._short_trees()
            yield from self._late_trees()
            yield from self._exchanged_indices()
            yield from self._short_loops()
