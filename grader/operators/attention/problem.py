"""Attention by its numbers, whatever the header of a file says of them.

A unit is a key head of one batch with the query heads that read it, its *group*: query head h reads key head
h·Hkv/Hq, rounded down. So Q of a unit has group · Nq rows, head after head. With o = Nk − Nq, query i sees keys
j ≤ i + o if causal, and j ≥ i + o − window if window ≥ 0. A query that sees no key has zeros.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from grader.operators.number_types import E4M3, E5M2, F16, NumberType

SEPARATE, PACKED, PACKED_KV = 0, 1, 2


@dataclass(frozen=True)
class Problem:
    """The numbers of one problem."""

    batches: int
    query_heads: int
    key_heads: int
    queries: int
    keys: int
    d: int
    type: NumberType
    causal: bool
    window: int
    layout: int
    scale: float

    @property
    def group(self) -> int:
        return self.query_heads // self.key_heads

    @property
    def rows(self) -> int:
        """The rows of Q and O of one unit."""
        return self.group * self.queries

    @property
    def ahead(self) -> int:
        """The number of the key with which query 0 is aligned: the last query is aligned with the last key."""
        return self.keys - self.queries

    @property
    def output_type(self) -> NumberType:
        return F16 if self.type in (E4M3, E5M2) else self.type

    @property
    def pairs(self) -> int:
        """The number of pairs of a query and a key that it sees, over all heads."""
        first, end = seen(self, np.arange(self.queries))
        return self.batches * self.query_heads * int(np.maximum(0, end - first).sum())


def seen(p: Problem, queries: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return (first, end) of the keys that each query sees; a query sees none if `end` is not larger than `first`."""
    place = queries + p.ahead
    first = np.maximum(place - p.window, 0) if p.window >= 0 else np.zeros_like(queries)
    end = np.minimum(place + 1, p.keys) if p.causal else np.full_like(queries, p.keys)
    return first, end


def is_seen(p: Problem) -> NDArray[np.bool_]:
    """Which keys each row of a unit sees, (rows, keys)."""
    first, end = seen(p, np.arange(p.rows) % p.queries)
    keys = np.arange(p.keys)
    return np.asarray((keys >= first[:, None]) & (keys < end[:, None]))
