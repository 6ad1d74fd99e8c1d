"""The online softmax, computed tile by tile, with a mistake of wrong programs if one is named.

After the last tile, each of the sums O and l is Σ_j exp(w_j + c_j) v_j (or 1 in place of v_j). w_j is the exponent of
key j's weight when its tile was merged, and c_j the sum of the exponents by which later tiles corrected the sum. A
mistake changes w, c, the keys that take part, or the maximum that the next tile starts from.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from grader.operators.attention.softmax import F64
from grader.operators.attention.wrong_ways import Compute
from grader.operators.base import Rows, Shape, Tensors


@dataclass(frozen=True)
class Merges:
    """The numbers with which a program merges its tiles. Maxima are (rows, tiles): of the keys before the tile (`old`,
    −inf at first), of the tile alone (`top`), and of both (`new`). `root` is √d."""

    scores: F64
    root: float
    tile: int
    old: F64
    top: F64
    new: F64

    def of_keys(self, values: F64) -> F64:
        """Values (rows, tiles) repeated for each key of the tile."""
        return np.repeat(values, self.tile, axis=1)

    def logarithms_of_l(self) -> F64:
        """log l after each tile, l being the sum relative to `new`: (rows, tiles)."""
        with np.errstate(divide="ignore"):
            tiles = np.exp(self.scores - self.of_keys(self.new)).reshape(*self.new.shape, self.tile).sum(axis=2)
            return np.logaddexp.accumulate(np.log(tiles) + self.new, axis=1) - self.new


Next = Callable[[F64, F64, F64], F64]
"""A function that returns the maximum that a program keeps after a tile, from the maximum before the tile, the tile's
scores, and the maximum of these."""


def larger(old: F64, scores: F64, top: F64) -> F64:
    return np.maximum(old, top)


def of_the_tile(old: F64, scores: F64, top: F64) -> F64:
    return top


def last_score(old: F64, scores: F64, top: F64) -> F64:
    return np.asarray(scores[:, -1])


def merges(scores: F64, root: float, tile: int, keep: Next = larger) -> Merges:
    tiles = scores.reshape(len(scores), -1, tile)
    top = tiles.max(axis=2)
    if keep is larger:
        kept = np.maximum.accumulate(top, axis=1)
    else:
        kept = np.stack([keep(top[:, 0], tiles[:, t], top[:, t]) for t in range(top.shape[1])], axis=1)
    old = np.concatenate([np.full((len(scores), 1), -np.inf), kept[:, :-1]], axis=1)
    return Merges(scores, root, tile, old, top, np.maximum(old, top))


def right_weight(merge: Merges) -> F64:
    return merge.scores - merge.of_keys(merge.new)


def right_correction(merge: Merges) -> F64:
    return merge.old - merge.new


@dataclass(frozen=True)
class Sum:
    """A way to accumulate O or l. `weight` returns the exponents of the keys' weights (rows, keys), and `correction`
    those of the factors by which the tiles multiply the sum (rows, tiles). The factor is applied before the tile's keys
    are added, `late` after them, and `each_key` before every single one of them. Keys outside `only` (by number,
    tile and count of keys) do not count."""

    weight: Callable[[Merges], F64] = right_weight
    correction: Callable[[Merges], F64] = right_correction
    late: bool = False
    each_key: bool = False
    only: Callable[[int, int, int], bool] | None = None

    def terms(self, merge: Merges) -> F64:
        """The contribution of each key to the sum after the last tile: (rows, keys)."""
        factors = self.correction(merge)
        times = merge.tile if self.each_key else 1
        later = np.zeros_like(factors)
        later[:, :-1] = np.cumsum(factors[:, :0:-1], axis=1)[:, ::-1] * times
        exponents = self.weight(merge) + merge.of_keys(later)
        if self.late:
            exponents += merge.of_keys(factors)
        if self.each_key:
            first = merge.tile - 1 - np.arange(merge.scores.shape[1]) % merge.tile
            exponents += np.where(first > 0, merge.of_keys(factors) * np.maximum(first, 1), 0.0)
        terms = np.exp(exponents)
        if self.only is not None:
            keys = range(merge.scores.shape[1])
            terms = terms * np.array([self.only(key, merge.tile, len(keys)) for key in keys])
        return np.asarray(terms)


RIGHT = Sum()


def online(
    tile: int, of_o: Sum = RIGHT, of_l: Sum = RIGHT, keep: Next = larger, divided: bool = True, parts: int = 1
) -> Compute:
    """Online softmax over tiles of keys with the sums `of_o` and `of_l`; not `divided`: O is not divided by l. Every
    `parts`-th key belongs to one part, and the parts are merged correctly at the end."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors[:3])
        root = float(np.sqrt(shape[2]))
        scores = q[rows] @ k.T / root
        merged = [merges(_whole_tiles(scores[:, part::parts], tile), root, tile, keep) for part in range(parts)]
        top = np.max([merge.new[:, -1:] for merge in merged], axis=0)
        out, total = np.zeros((len(scores), v.shape[1])), np.zeros((len(scores), 1))
        for part, merge in enumerate(merged):
            share = np.exp(merge.new[:, -1:] - top) if parts > 1 else 1.0
            values = v[part::parts]
            out += share * (of_o.terms(merge)[:, : len(values)] @ values)
            total += share * of_l.terms(merge).sum(axis=1, keepdims=True)
        return np.asarray(out / total if divided else out)

    return compute


def _whole_tiles(scores: F64, tile: int) -> F64:
    """The scores with keys of weight 0 up to a whole number of tiles."""
    return np.pad(scores, ((0, 0), (0, -scores.shape[1] % tile)), constant_values=-np.inf)


def own_maxima(tile: int, threads: int, shared_by: int) -> Compute:
    """Online softmax over tiles in which every `threads`-th key of a tile belongs to one thread, and only `shared_by`
    threads in a row have a maximum in common. The first of them keeps its own for the next tile."""

    def compute(shape: Shape, tensors: Tensors, rows: Rows) -> F64:
        q, k, v = (t.astype(np.float64) for t in tensors[:3])
        scores = _whole_tiles(q[rows] @ k.T / np.sqrt(shape[2]), tile)
        kept, out, total = np.full((len(scores), 1), -np.inf), np.zeros((len(scores), v.shape[1])), 0.0
        group = np.arange(tile) % threads // shared_by
        for first in range(0, scores.shape[1], tile):
            part = scores[:, first : first + tile]
            tops = [
                np.maximum(kept, part[:, group == each].max(axis=1, keepdims=True)) for each in range(group[-1] + 1)
            ]
            weights = np.exp(part - np.concatenate(tops, axis=1)[:, group])
            shrink = np.exp(kept - tops[0])
            values = v[first : first + tile]
            out = out * shrink + weights[:, : len(values)] @ values
            total = total * shrink + weights.sum(axis=1, keepdims=True)
            kept = tops[0]
        return np.asarray(out / total)

    return compute
