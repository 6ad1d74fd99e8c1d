"""Which hand-ins resemble each other: a hint for a person who then reads both, never a score.

Fingerprints by winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003; the library copydetect), of the code without
comments, layout and names, so that renaming and reformatting change nothing. What the template hands out, and what more
than half of a large class has, tells nothing and is taken out.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from tabulate import tabulate

from grader.errors import UsageError

NOISE = 25
"""Matches of fewer tokens than this are noise (copydetect's default k)."""
_GUARANTEED = 30
"""Matches of this many tokens are always found."""
_COMMON_FROM = 8
"""From so many hand-ins on, what most of them share is taken for common knowledge."""
SOURCES = frozenset({".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"})


@dataclass(frozen=True)
class Piece:
    """A stretch of a hand-in's text, and whether it is found in the other of the pair as well."""

    text: str
    shared: bool


@dataclass(frozen=True)
class Pair:
    """Two hand-ins. `first_share` is how much of the first is found in the second, 0 to 1; `tokens` how many characters
    of the normalised code they share."""

    first: str
    second: str
    first_share: float
    second_share: float
    tokens: int
    first_text: tuple[Piece, ...]
    second_text: tuple[Piece, ...]

    @property
    def share(self) -> float:
        return max(self.first_share, self.second_share)


def closest(hand_ins: dict[str, str], template: Sequence[str], *, top: int = 20) -> list[Pair]:
    """The `top` most similar pairs of `hand_ins` (sources by id), without what is in `template`. Raises UsageError when
    copydetect is missing."""
    try:
        from copydetect import CodeFingerprint, compare_files
    except ImportError as error:
        raise UsageError(
            "`grader similarity` needs copydetect: pip install 'cuda-homework-grader[similarity]'."
        ) from error

    def fingerprint(name: str, text: str, known: Sequence[int] = ()) -> Any:
        window = _GUARANTEED - NOISE + 1
        return CodeFingerprint(
            f"{name}.cu", NOISE, window, boilerplate=list(known), fp=io.StringIO(text), language="cuda"
        )

    known: set[int] = set()
    for text in template:  # every k-gram of the template, not a sample, so that none of it slips through
        known |= CodeFingerprint("t.cu", NOISE, 1, fp=io.StringIO(text), language="cuda").hashes
    prints = {name: fingerprint(name, text, list(known)) for name, text in hand_ins.items()}
    if len(prints) >= _COMMON_FROM:
        counts = Counter(mark for one in prints.values() for mark in one.hashes)
        common = {mark for mark, count in counts.items() if count > len(prints) / 2}
        prints = {name: fingerprint(name, hand_ins[name], list(known | common)) for name in prints}
    ranked = sorted(
        combinations(sorted(prints), 2), key=lambda pair: -_likeness(prints[pair[0]].hashes, prints[pair[1]].hashes)
    )
    pairs = []
    for first, second in ranked[: 4 * top]:  # the exact comparison is dear; hashes alone order well enough to choose
        tokens, (one, other), (here, there) = compare_files(prints[first], prints[second])
        if tokens:
            texts = (_pieces(hand_ins[first], here), _pieces(hand_ins[second], there))
            pairs.append(Pair(first, second, float(one), float(other), int(tokens), *texts))
    return sorted(pairs, key=lambda pair: (-pair.share, -pair.tokens, pair.first, pair.second))[:top]


def _likeness(one: set[int], other: set[int]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _pieces(text: str, slices: Any) -> tuple[Piece, ...]:
    pieces, at = [], 0
    for start, end in sorted(zip(slices[0].tolist(), slices[1].tolist(), strict=True)):
        start, end = max(at, int(start)), max(at, int(end))
        pieces += [Piece(text[at:start], False), Piece(text[start:end], True)]
        at = end
    pieces.append(Piece(text[at:], False))
    return tuple(piece for piece in pieces if piece.text)


def render(pairs: Sequence[Pair], count: int) -> str:
    """The closest pairs as a table."""
    if not pairs:
        return f"No two of {count} hand-ins share more than the template and what most have."
    rows = [
        (pair.first, f"{pair.first_share:.0%}", pair.second, f"{pair.second_share:.0%}", pair.tokens) for pair in pairs
    ]
    table = tabulate(rows, headers=("one", "of it shared", "other", "of it shared", "characters"), tablefmt="simple")
    return f"{table}\n\nA hint of where to look, not a finding: read both before you think anything."


def joined(files: Sequence[tuple[str, bytes]]) -> str:
    """The sources of a hand-in as one text, in the order of their names."""
    chosen = [(name, content) for name, content in files if Path(name).suffix in SOURCES]
    return "\n".join(content.decode("utf-8", errors="replace") for _, content in sorted(chosen))
