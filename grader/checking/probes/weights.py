"""Reads a matrix of weights: the exponent's slope, keys that are left out, masks, sums, and tiles not rescaled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from grader.checking.wrong_places import even_step, spans
from grader.findings import Finding
from grader.operators.probes import F64, Weights

SURE, EXACT = 0.9, 0.95
TINY = 1e-28
"""Weights below this have too few bits in float32 to take a logarithm of."""
UNUSED, USED = 1e-9, 1e-4
"""A weight that should be larger than `USED` and is smaller than `UNUSED` was left out."""
EQUAL = 1e-3
"""The largest relative difference of two sums that are equal, in float32."""
FLAT = 0.02
"""The largest deviation of a logarithm from a line, in float32; halves have their own."""


def read_weights(probe: Weights, found: F64, roundoff: float, rows: NDArray[np.intp] | None = None) -> Finding | None:
    """What the weights `found` say. None if they are right, or no weights of these scores at all. `roundoff`: the
    relative error of a value of the output. `rows`: the numbers of the queries, if they are not all."""
    rows = np.arange(len(found)) if rows is None else rows
    good: NDArray[np.bool_] = np.asarray(np.isfinite(found).all(axis=1))
    written = good & (np.abs(np.where(good[:, None], found, 0)).max(axis=1) > 0)
    if good.mean() < 0.5 or not written.any():
        return None
    if probe.terms and (lost := good & ~written & probe.seen.any(axis=1)).any():
        return _terms_lost(probe, lost)
    if not written.all():  # rows of zeros or NaN are seen without an experiment
        factors = probe.factors[0][written], probe.factors[1]
        part = replace(probe, scores=probe.scores[written], seen=probe.seen[written], factors=factors)
        return read_weights(part, found[written], roundoff, rows[written])
    right, near, flat = right_weights(probe), max(2e-4, 8 * roundoff), max(FLAT, 16 * roundoff)
    if np.abs(found - right).max() <= near * max(1e-3, float(right.max())):
        return None
    negative = bool((found < -near).any())
    slope = None if negative else _slope(probe.scores, found, probe.seen, flat)
    if slope is not None and abs(slope / probe.scale - 1) > max(5e-3, 4 * roundoff):
        return _scale(probe, slope)
    which = _mask(probe, found, right, rows) or _keys_left_out(probe, found, right)
    if which is not None or negative:
        return which
    return _not_a_line(probe, found, right, flat) if slope is None else _sums(probe, found, roundoff, rows)


def right_weights(probe: Weights) -> F64:
    s = np.where(probe.seen, probe.scale * probe.scores, -np.inf)
    top = s.max(axis=1, keepdims=True)
    e = np.exp(s - np.where(np.isfinite(top), top, 0))
    return np.asarray(e / np.maximum(e.sum(axis=1, keepdims=True), 1e-300))


# ---- which keys -------------------------------------------------------------------------------------------------


def _terms_lost(probe: Weights, lost: NDArray[np.bool_]) -> Finding:
    """Terms of a sum that are not in it: whole heads, if they are that."""
    heads = lost.reshape(probe.heads, -1)
    should = probe.seen.any(axis=1).reshape(probe.heads, -1)
    whole = (heads == should).all(axis=1)
    if probe.heads > 1 and (whole | ~heads.any(axis=1)).all():
        lost, over = whole, "query heads"
    else:
        over = probe.terms
    numbers = np.flatnonzero(lost)
    return made("terms_missing", SURE, array=probe.array, count=len(numbers), over=over, numbers=spans(numbers))


def _keys_left_out(probe: Weights, found: F64, right: F64) -> Finding | None:
    """Keys that no query uses, though several should. The other weights must be right but for a factor."""
    should = (right > USED).sum(axis=0) > 0
    unused = should & ((np.abs(found) / np.abs(found).max(axis=1, keepdims=True)).max(axis=0) < UNUSED)
    if not unused.any() or unused.all() or not _only_masked(found, right, probe.seen & ~unused):
        return None
    numbers = np.flatnonzero(unused)
    return made(
        "keys_unused", SURE, array=probe.array, over="keys", keys=spans(numbers), count=len(numbers), of=len(unused),
        tile=even_step(numbers),
    )  # fmt: skip


def _values_moved(found: F64, right: F64) -> Finding | None:
    """The weights of some keys are multiplied by the values of other keys."""
    amounts = np.linalg.lstsq(right, found, rcond=None)[0]  # of each key's weights in each column
    columns, keys = amounts.argmax(axis=1), np.arange(len(amounts))
    moved = np.flatnonzero(columns != keys)
    if not len(moved) or np.abs(amounts - np.eye(amounts.shape[1])[columns]).max() >= 0.1:
        return None
    first = int(moved[0])
    tile = next((tile for tile in (2**n for n in range(9)) if (columns == keys % tile).all()), None)
    facts = {"key": first, "other": int(columns[first]), "tile": tile}
    return made("values_of_other_keys", SURE, array="V", keys=spans(moved), **facts)


def _mask(probe: Weights, found: F64, right: F64, rows: NDArray[np.intp]) -> Finding | None:
    """Queries that see other keys than they should, apart from keys that none sees."""
    uses = np.abs(found) > UNUSED * np.abs(found).max(axis=1, keepdims=True)
    clear = (right > USED) | ~probe.seen
    if probe.seen.all():
        clear &= uses.any(axis=0)
    wrong = (clear & (uses != probe.seen)).sum(axis=1)
    if not wrong.any() or (~uses).all() or not _only_masked(found, right, uses & probe.seen):
        return None
    row = int(np.flatnonzero(wrong)[(wrong > 0).sum() // 2])
    keys, wanted = spans(np.flatnonzero(uses[row])), spans(np.flatnonzero(probe.seen[row]))
    causal = probe.seen.all() and (uses == np.tri(len(uses), uses.shape[1], uses.shape[1] - len(uses))).all()
    facts = {"query": int(rows[row]), "found": keys or "-", "expected": wanted or "-"}
    return made("mask_wrong", SURE, array=probe.array, how="causal" if causal else None, **facts)


def _only_masked(found: F64, right: F64, both: NDArray[np.bool_]) -> bool:
    """Whether, in most rows, the weights of keys that are rightly used are the right ones times one factor. Otherwise
    other keys or values were read, and a mask explains nothing."""
    both = both & (right > USED) & (found > TINY)
    several = both.sum(axis=1) >= 2
    if not several.any():
        return True
    off = _centred(np.log(np.where(both, found, 1) / np.where(both, right, 1)), both)
    return float(np.median(np.abs(off[several]).max(axis=1))) < 0.1


# ---- the exponent -----------------------------------------------------------------------------------------------


def _slope(scores: F64, found: F64, seen: NDArray[np.bool_], flat: float) -> float | None:
    """The slope of log(weight) against the score; None if it is no line."""
    counted = seen & (found > TINY)
    counted &= counted.sum(axis=1, keepdims=True) >= 3
    if counted.sum() < 8:
        return None
    x, y = _centred(scores, counted), _centred(np.log(np.where(counted, found, 1)), counted)
    slope = float((x * y).sum() / max((x * x).sum(), 1e-300))
    off = np.abs(y - slope * x)[counted]
    # Where weights nearly underflow their logarithms are coarse.
    return slope if np.quantile(off, 0.98) < flat * max(1.0, abs(float(np.abs(slope * x).max())) / 16) else None


def _centred(values: F64, counted: NDArray[np.bool_]) -> F64:
    mean = (values * counted).sum(axis=1, keepdims=True) / np.maximum(counted.sum(axis=1, keepdims=True), 1)
    return np.where(counted, values - mean, 0.0)


def _scale(probe: Weights, slope: float) -> Finding:
    facts = {"of": "Q Kᵀ", "slope": _round(slope), "expected": _round(probe.scale)}
    meaning = scale_meaning(slope / probe.scale, probe.scale)
    return made("scale_wrong", SURE, array=probe.array, meaning=meaning, **facts)


def scale_meaning(ratio: float, scale: float) -> str | None:
    """The catalogue's word for a factor `ratio` of the exponent, which should be 1; None if it is none of these."""
    meanings = {"no_scale": 1 / scale, "scale_twice": scale, "inverse": scale**-2, "base_two": math.log(2)}
    meanings |= {"negative": -1.0, "as_integer": float(np.float32(scale).view(np.int32)) / scale}
    close = (word for word, value in meanings.items() if abs(ratio - value) < 0.01 * abs(value))
    return next(close, "unused" if abs(ratio) < 1e-3 else None)


def _not_a_line(probe: Weights, found: F64, right: F64, flat: float) -> Finding | None:
    """The weights do not follow from the scores alone."""
    s, counted = probe.scale * probe.scores, probe.seen & (found > TINY)
    logs = np.log(np.where(counted, found, 1))
    for tile in _tiles(found.shape[1]):
        stale = s - _running_maxima(np.where(probe.seen, s, -np.inf), tile)
        if _spread(logs - stale, counted) < flat:
            if _spread(logs - s, counted) < 4 * flat:
                return None  # nearly the right weights: too little for a cause
            alone = abs(float(np.median(found.sum(axis=1))) - 1) > 1e-2
            return made("not_rescaled", EXACT, array="O" if alone else "O and l", tile=tile)
    return _values_moved(found, right) or _by_columns(probe, _centred(logs, counted), counted, flat)


def _by_columns(probe: Weights, logs: F64, counted: NDArray[np.bool_], flat: float) -> Finding | None:
    """Columns of Q and K that do not count."""
    q, k = probe.factors
    features = np.stack([_centred(np.outer(q[:, x], k[:, x]), counted)[counted] for x in range(q.shape[1])], axis=1)
    slopes = np.linalg.lstsq(features, logs[counted], rcond=None)[0]
    unused = np.abs(slopes) < 0.05 * probe.scale
    if np.abs(features @ slopes - logs[counted]).max() >= 4 * flat or not unused.any() or unused.all():
        return None
    return made("columns_unused", SURE, array="Q Kᵀ", columns=spans(np.flatnonzero(unused)), of=len(unused))


# ---- the sums ---------------------------------------------------------------------------------------------------


def _sums(probe: Weights, found: F64, roundoff: float, rows: NDArray[np.intp]) -> Finding | None:
    """The exponent is right, so what a row was divided by is wrong."""
    s = np.where(probe.seen, probe.scale * probe.scores, -np.inf)
    top, sums, exact = s.max(axis=1), np.maximum(found.sum(axis=1), 1e-300), max(EQUAL, 16 * roundoff)
    if (np.abs(sums - 1) > 5e-3).mean() < 0.25:
        return None
    # What each row was divided by, if the weights are exp(s − m) / l.
    divisor = np.maximum(np.exp(s - top[:, None]).sum(axis=1), 1e-300) / sums

    def divided_by(what: F64 | float) -> bool:
        return float(np.abs(divisor / what - 1).max()) < exact

    by_maximum = min(float(np.abs(np.log(sums) + way * top).max()) for way in (-1, 1)) < exact
    how = "undivided" if divided_by(1.0) or divided_by(np.exp(-top)) else "maximum" if by_maximum else None
    for tile in _tiles(found.shape[1]) if how is None else ():
        # A tile without a new maximum needs no correction, so these sums are right where the others are not.
        if divided_by(np.exp(s - _running_maxima(s, tile)).sum(axis=1)):
            return made("not_rescaled", EXACT, array="l", tile=tile)
    row = int(np.abs(np.log(sums)).argmax())
    return made(
        "rows_not_normalised", SURE, array=probe.array, how=how, row=int(rows[row]), sum=_round(float(sums[row]))
    )


def _tiles(keys: int) -> Iterable[int]:
    """Possible sizes of a tile: powers of two, and what is between them."""
    return (t for t in sorted({1, *(2**n for n in range(1, 11)), *(3 * 2**n for n in range(3, 9))}) if t < keys)


def _running_maxima(s: F64, tile: int) -> F64:
    """For each score, the maximum up to the end of its tile."""
    tops = np.maximum.reduceat(s, np.arange(0, s.shape[1], tile), axis=1)
    return np.asarray(np.repeat(np.maximum.accumulate(tops, axis=1), tile, axis=1)[:, : s.shape[1]])


def _spread(values: F64, counted: NDArray[np.bool_]) -> float:
    """The 98 % quantile of the deviation from each row's median."""
    off = values - np.nanmedian(np.where(counted, values, np.nan), axis=1, keepdims=True)
    return float(np.quantile(np.abs(off[counted]), 0.98)) if counted.any() else math.inf


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def made(kind: str, certainty: float, **facts: object) -> Finding:
    """A finding without a place."""
    return Finding.from_facts(kind, facts, certainty=certainty)
