"""Reads a matrix of weights: the exponent's slope, keys that are left out, masks, sums, and tiles not rescaled."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

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


def read_weights(probe: Weights, found: F64, roundoff: float, rows: NDArray[np.intp] | None = None) -> list[Finding]:
    """What the weights `found` say. Empty if they are right, or no weights of these scores at all. `roundoff`: the
    relative error of a value of the output. `rows`: the numbers of the queries, if they are not all."""
    rows = np.arange(len(found)) if rows is None else rows
    good: NDArray[np.bool_] = np.asarray(np.isfinite(found).all(axis=1))
    written = good & (np.abs(np.where(good[:, None], found, 0)).max(axis=1) > 0)
    if good.mean() < 0.5 or not written.any():
        return []
    if probe.terms and (lost := good & ~written & probe.seen.any(axis=1)).any():
        return [_terms_lost(probe, lost)]
    if not written.all():  # rows of zeros or NaN are seen without an experiment
        scores, seen = probe.scores[written], probe.seen[written]
        factors = probe.factors[0][written], probe.factors[1]
        part = replace(probe, scores=scores, seen=seen, factors=factors)
        return read_weights(part, found[written], roundoff, rows[written])
    right, near, flat = right_weights(probe), max(2e-4, 8 * roundoff), max(FLAT, 16 * roundoff)
    if np.abs(found - right).max() <= near * max(1e-3, float(right.max())):
        return []
    slope = None if (found < -near).any() else _slope(probe.scores, found, probe.seen, flat)
    if slope is not None and abs(slope / probe.scale - 1) > max(5e-3, 4 * roundoff):
        return [_scale(probe, slope)]
    mask = _mask(probe, found, right, rows)
    if (which := mask or _keys_left_out(probe, found, right)) is not None:
        return [which]
    if (found < -near).any():
        return []
    return list(_not_a_line(probe, found, right, flat) if slope is None else _sums(probe, found, roundoff, rows))


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
    facts: dict[str, object] = {"count": len(numbers), "of": len(unused)}
    if tile := _period(unused):
        facts["tile"] = tile
    return made("keys_unused", SURE, array=probe.array, keys=spans(numbers), over="keys", **facts)


def _period(unused: NDArray[np.bool_]) -> int:
    """The length after which the pattern repeats, if it does more than twice; else 0."""
    for tile in range(2, len(unused) // 2 + 1):
        fits = len(unused) % tile == 0 and 0 < unused[:tile].sum() <= tile // 2
        if fits and (unused.reshape(-1, tile) == unused[:tile]).all():
            return tile
    return 0


def _values_moved(probe: Weights, found: F64, right: F64) -> Finding | None:
    """The weights of some keys are multiplied by the values of other keys."""
    moves = _selection(right.T, found.T)
    if moves is None or (moves == np.arange(len(moves))).all():
        return None
    numbers = np.flatnonzero(moves != np.arange(len(moves)))
    key = int(numbers[0])
    facts: dict[str, object] = {"key": key, "other": int(moves[key])}
    if tile := next((t for t in (1, 2, 4, 8, 16, 32, 64, 128, 256) if (moves == np.arange(len(moves)) % t).all()), 0):
        facts["tile"] = tile
    return made("values_of_other_keys", SURE, array="V", keys=spans(numbers), **facts)


def _selection(right: F64, found: F64) -> NDArray[np.intp] | None:
    """For each row j of `right`, the row of `found` that it was added to; None if it is no such sum."""
    amounts = np.linalg.lstsq(right.T, found.T, rcond=None)[0]
    chosen = amounts.argmax(axis=1)
    ideal = np.zeros_like(amounts)
    ideal[np.arange(len(chosen)), chosen] = 1
    return chosen if np.abs(amounts - ideal).max() < 0.1 else None


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
    if (uses == np.tri(len(uses), uses.shape[1], uses.shape[1] - len(uses), dtype=np.bool_)).all() and probe.seen.all():
        return made(
            "mask_wrong", SURE, array=probe.array, how="causal", query=int(rows[row]), found=keys, expected=wanted
        )
    return made("mask_wrong", SURE, array=probe.array, query=int(rows[row]), found=keys or "-", expected=wanted or "-")


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
    ratio, scale = slope / probe.scale, probe.scale
    meanings = {
        "no_scale": 1.0,
        "scale_twice": scale * scale,
        "inverse": 1 / scale,
        "base_two": scale * math.log(2),
        "negative": -scale,
    }
    close = [name for name, value in meanings.items() if abs(slope - value) < 0.01 * abs(value)]
    meaning = "unused" if abs(ratio) < 1e-3 else close[0] if close else ""
    facts: dict[str, object] = {"meaning": meaning} if meaning else {}
    facts |= {"of": "Q Kᵀ", "slope": _round(slope), "expected": _round(scale)}
    return made("scale_wrong", SURE, array=probe.array, **facts)


def _not_a_line(probe: Weights, found: F64, right: F64, flat: float) -> Iterable[Finding]:
    """The weights do not follow from the scores alone."""
    s, counted = probe.scale * probe.scores, probe.seen & (found > TINY)
    for tile in _tiles(found.shape[1]):
        stale = s - _running_maxima(np.where(probe.seen, s, -np.inf), tile)
        if _spread(np.log(np.where(counted, found, 1)) - stale, counted) < flat:
            if _spread(np.log(np.where(counted, found, 1)) - s, counted) < 4 * flat:
                return  # nearly the right weights: too little for a cause
            alone = abs(float(np.median(found.sum(axis=1))) - 1) > 1e-2
            yield made("not_rescaled", EXACT, array="O" if alone else "O and l", tile=tile)
            return
    if (moved := _values_moved(probe, found, right)) is not None:
        yield moved
    else:
        yield from _by_columns(probe, found, counted, flat)


def _by_columns(probe: Weights, found: F64, counted: NDArray[np.bool_], flat: float) -> Iterable[Finding]:
    """Columns of Q and K that do not count."""
    q, k = probe.factors
    logs = _centred(np.log(np.where(counted, found, 1)), counted)
    features = np.stack([_centred(np.outer(q[:, x], k[:, x]), counted)[counted] for x in range(q.shape[1])], axis=1)
    slopes = np.linalg.lstsq(features, logs[counted], rcond=None)[0]
    if np.abs(features @ slopes - logs[counted]).max() < 4 * flat:
        unused = np.abs(slopes) < 0.05 * probe.scale
        if unused.any() and not unused.all():
            numbers = np.flatnonzero(unused)
            yield made("columns_unused", SURE, array="Q Kᵀ", columns=spans(numbers), of=len(unused))


# ---- the sums ---------------------------------------------------------------------------------------------------


def _sums(probe: Weights, found: F64, roundoff: float, rows: NDArray[np.intp]) -> Iterable[Finding]:
    """The exponent is right, so what a row was divided by is wrong."""
    s = np.where(probe.seen, probe.scale * probe.scores, -np.inf)
    top = s.max(axis=1, keepdims=True)
    e = np.exp(s - top)
    # What each row was divided by, if the weights are exp(s − m) / l.
    weight = np.maximum(e.sum(axis=1), 1e-300)
    divisor = weight / np.maximum(found.sum(axis=1), 1e-300)
    sums = found.sum(axis=1)
    row = int(np.abs(np.log(np.maximum(sums, 1e-30))).argmax())
    if (np.abs(sums - 1) > 5e-3).mean() < 0.25:
        return
    fact = {"row": int(rows[row]), "sum": _round(float(sums[row]))}
    exact = max(EQUAL, 16 * roundoff)
    if np.abs(divisor - 1).max() < exact:
        yield made("rows_not_normalised", SURE, array=probe.array, how="undivided", **fact)
        return
    if np.abs(divisor / np.exp(-top[:, 0]) - 1).max() < exact:
        yield made("rows_not_normalised", SURE, array=probe.array, how="undivided", **fact)
        return
    if min(float(np.abs(np.log(np.maximum(sums, 1e-300)) + way * top[:, 0]).max()) for way in (-1, 1)) < exact:
        yield made("rows_not_normalised", SURE, array=probe.array, how="maximum", **fact)
        return
    for tile in _tiles(found.shape[1]):
        # A tile without a new maximum needs no correction, so these sums are right where the others are not.
        stale = np.exp(s - _running_maxima(s, tile)).sum(axis=1)
        if np.abs(divisor / stale - 1).max() < exact:
            yield made("not_rescaled", EXACT, array="l", tile=tile)
            return
    yield made("rows_not_normalised", SURE, array=probe.array, **fact)


def _tiles(keys: int) -> Iterable[int]:
    """Possible sizes of a tile: powers of two, and what is between them."""
    return (t for t in sorted({1, *(2**n for n in range(1, 11)), *(3 * 2**n for n in range(3, 9))}) if t < keys)


def _running_maxima(s: F64, tile: int) -> F64:
    begins = np.arange(0, s.shape[1], tile)
    tops = np.maximum.accumulate(np.maximum.reduceat(s, begins, axis=1), axis=1)
    return np.asarray(np.repeat(tops, np.diff([*begins, s.shape[1]]), axis=1))


def _spread(values: F64, counted: NDArray[np.bool_]) -> float:
    """The 98 % quantile of the deviation from each row's median."""
    off = values - np.nanmedian(np.where(counted, values, np.nan), axis=1, keepdims=True)
    return float(np.quantile(np.abs(off[counted]), 0.98)) if counted.any() else math.inf


def _round(value: float) -> float:
    return float(f"{value:.4g}")


def made(kind: str, certainty: float, array: str | None = None, **facts: object) -> Finding:
    """A finding without a place; words and numbers among `facts`."""
    words = {name: value for name, value in facts.items() if isinstance(value, str)}
    values = {name: value for name, value in facts.items() if not isinstance(value, str)}
    return Finding.model_validate(
        {"kind": kind, "certainty": certainty, "array": array, "words": words, "values": values}
    )


def spans(numbers: NDArray[np.intp]) -> str:
    """Numbers in few words: "31, 63, 95 and 127", "32 to 63", "0, 100 …"."""
    if not len(numbers):
        return ""
    groups = np.split(numbers, np.flatnonzero(np.diff(numbers) != 1) + 1)
    said = [f"{g[0]}–{g[-1]}" if len(g) > 1 else str(g[0]) for g in groups[:6]]
    return ", ".join(said) + (" …" if len(groups) > 6 else "")
