"""What the values of a program may hold, as far as its text tells: whole arrays of data, or none.

host_arithmetic.py follows data through a Python submission with it. Kinds are ordered, and a value that can come by
several ways has the highest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

NONE, BITS, DATA = range(3)
"""What a value may hold, in rising order: no data; integers, which may be data under another type; data."""
Kind = int | tuple["Kind", ...]
"""A tuple is the kind of a container: that of each element, or one for all."""
_DEEPEST = 4
"""Containers within containers that are kept apart."""


def joined(one: Kind, other: Kind) -> Kind:
    """The kind of what may be either."""
    if isinstance(one, int) and isinstance(other, int):
        return max(one, other)
    if isinstance(one, tuple) and isinstance(other, tuple):
        if len(one) == len(other):
            return tuple(joined(*pair) for pair in zip(one, other, strict=True))
        return (most([*one, *other]),)
    return (one or other) if NONE in (one, other) else most([one, other])


def most(kinds: Iterable[Kind]) -> int:
    """All data that is in these, in one."""
    return max((kind if isinstance(kind, int) else most(kind) for kind in kinds), default=NONE)


def shallow(kind: Kind, depth: int = _DEEPEST) -> Kind:
    """The kind without the containers deep inside of it, which can be many."""
    if isinstance(kind, int) or not depth:
        return kind if isinstance(kind, int) else most(kind)
    return tuple(shallow(part, depth - 1) for part in kind)


def element(kind: Kind, index: object = None) -> Kind:
    """What iteration gives, or the index where that is known; a part of an array is an array."""
    if isinstance(kind, int):
        return kind
    if len(kind) == 1:
        return kind[0]
    if isinstance(index, int) and -len(kind) <= index < len(kind):
        return kind[index]
    none: Kind = NONE
    return reduce(joined, kind, none)
