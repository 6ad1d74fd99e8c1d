"""Reads what a Python program's process recorded of its run (`grader.python.provenance` writes it)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO

import numpy as np
from numpy.typing import NDArray

from grader.python.layout import MOST_RECORDED_BYTES
from grader.python.value_sources import TYPE_BYTES

_MOST_HEADING = 1 << 20


@dataclass(frozen=True)
class Entry:
    """What a program did: copied an array to the device or back (uploads, downloads), gave numbers to a launch
    (arguments), measured a time in ms (times), or wrote its output (written)."""

    kind: str
    type: str
    size: int
    values: NDArray[np.uint8]
    numbers: tuple[object, ...]
    line: int
    omitted: int = 0
    """The bytes of an array that had no room in the record."""

    @property
    def form(self) -> tuple[object, ...]:
        return self.kind, self.type, self.size, self.values.size + self.omitted, tuple(map(type, self.numbers))


def read_record(file: IO[bytes]) -> list[Entry] | None:
    """The entries of a record, after its first line; None if no program of the grader's wrote it, or it would have
    become too large."""
    left = file.seek(0, 2)
    file.seek(0)
    left -= len(file.readline(MOST_RECORDED_BYTES))
    if left > MOST_RECORDED_BYTES:
        return None
    found = []
    try:
        while left > 0:
            text = file.readline(_MOST_HEADING)
            heading = json.loads(text)
            size, count, type_ = int(heading["size"]), int(heading["bytes"]), str(heading["type"])
            omitted, count = (count, 0) if heading["omitted"] else (0, count)
            left -= len(text) + count
            if size not in (1, 2, 4, 8) or min(count, omitted) < 0 or count % size or left < 0:
                return None
            if heading["kind"] == "downloads" and type_ and TYPE_BYTES.get(type_) != size:
                return None
            values = np.frombuffer(file.read(count), np.uint8)
            numbers = tuple(heading["numbers"])
            if not all(map(_is_a_number, numbers)):
                return None
            found.append(Entry(str(heading["kind"]), type_, size, values, numbers, int(heading["line"]), omitted))
    except (ValueError, TypeError, KeyError, ArithmeticError, RecursionError):
        return None
    return found


def _is_a_number(given: object) -> bool:
    """Whether a record may hold it: a name, a time, an integer, or an argument's bits after the name of its type."""
    match given:
        case str() | float():
            return True
        case int():
            return abs(given) < 1 << 63
        case [str(kind), int(bits)]:
            return kind in TYPE_BYTES and 0 <= bits < 1 << 8 * TYPE_BYTES[kind]
    return False
