"""Kinds of values in a Python program, which say whether a value can contain whole arrays of data.

host_arithmetic.py uses these kinds to follow data through a submission. Kinds are ordered. A value that can come from
several places has the highest of their kinds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

NONE, BITS, DATA = range(3)
"""What a value may contain, in rising order: no data; integers, which `view` can turn into data; data."""
Kind = int | tuple["Kind", ...]
"""A container's kind is a tuple: one kind for each element, or a single kind for all elements."""
_DEEPEST = 4
"""The depth to which the kinds of nested containers are distinguished."""


def joined(one: Kind, other: Kind) -> Kind:
    """The kind of a value that has either of two kinds."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(one) == len(other):
            return tuple(joined(*pair) for pair in zip(one, other, strict=True))
        return (most([*one, *other]),)
    return (one or other) if NONE in (one, other) else most([one, other])


def most(kinds: Iterable[Kind]) -> int:
    """The highest of these kinds and of the kinds inside them."""
    return max((kind if isinstance(kind, int) else most(kind) for kind in kinds), default=NONE)


def shallow(kind: Kind, depth: int = _DEEPEST) -> Kind:
    """`kind` with every container below `depth` levels replaced by its highest kind, to limit the size of kinds."""
    if isinstance(kind, int) or not depth:
        return kind if isinstance(kind, int) else most(kind)
    return tuple(shallow(part, depth - 1) for part in kind)


def element(kind: Kind, index: object = None) -> Kind:
    """The kind of the container's element at `index`, or of any element if the index is unknown. A part of an array has
    the array's kind."""
    if isinstance(kind, int):
        return kind
    if len(kind) == 1:
        return kind[0]
    if isinstance(index, int) and -len(kind) <= index < len(kind):
        return kind[index]
    none: Kind = NONE
    return reduce(joined, kind, none)
