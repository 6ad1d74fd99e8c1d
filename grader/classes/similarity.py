"""Which hand-ins resemble each other: a hint for a person who then reads both, never a score.

Fingerprints by winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003; the library copydetect), of the code without
comments, layout and names, so that renaming and reformatting change nothing. What the template hands out, and what more
than half of a large class has, tells nothing and is taken out. Many copies of one hand-in are one group, not all of
their pairs.
"""

from __future__ import annotations

import importlib.util
import io
import textwrap
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from tabulate import tabulate

from grader.base.errors import UsageError
from grader.base.names import spelled_out
from grader.sandbox.bounded import Bounded, Exceeded

Name = TypeVar("Name", bound=Hashable)

NOISE = 25
"""Matches of fewer tokens than this are noise (copydetect's default k)."""
_GUARANTEED = 30
"""Matches of this many tokens are always found."""
_TIME_S, _MEMORY_BYTES = 30, 4 << 30
"""For each hand-in, and each pair."""
_COMMON_FROM = 8
"""From so many hand-ins on, what most of them share is taken for common knowledge."""
SOURCES = frozenset({".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp"})


_ALIKE = 0.8
"""Hand-ins that share this much of the larger one's fingerprint are put in one group."""
_LEAST_GROUP = 3
"""Two alike are a pair; from three on they are a group."""


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


@dataclass(frozen=True)
class Group:
    """Three or more hand-ins that are nearly the same, as one thing instead of all their pairs.

    `members` begins with the one that is most like all others, `shares` says how alike each is to it, 0 to 1, and
    `widest` is that one beside the member that differs most from it."""

    members: tuple[str, ...]
    shares: tuple[float, ...]
    widest: Pair | None

    @property
    def least(self) -> float:
        return min(self.shares)


@dataclass(frozen=True)
class Findings:
    """Groups, largest first, and the closest pairs, of which a group counts as one hand-in: that of its first member.
    `count` is how many hand-ins were compared, `left_out` names those that took too long."""

    count: int
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...] = ()


def resembling(hand_ins: Mapping[str, str], template: Sequence[str], *, top: int = 20) -> Findings:
    """What in `hand_ins` (sources by id) resembles what, without what is in `template`: every group, and the `top`
    closest pairs. Raises UsageError when copydetect is missing."""
    prints = _Prints(hand_ins, template)
    groups = tuple(_group(prints, members) for members in _clusters(prints.marks) if len(members) >= _LEAST_GROUP)
    absorbed = {name for group in groups for name in group.members[1:]}
    pairs = _closest(prints, sorted(prints.marks.keys() - absorbed), top)
    ordered = tuple(sorted(groups, key=lambda group: (-len(group.members), group.members)))
    return Findings(len(prints.marks), ordered, pairs, tuple(prints.left_out))


def fingerprint(name: str, text: str, known: Sequence[int], *, window: int = _GUARANTEED - NOISE + 1) -> Any:
    """copydetect's, of one hand-in."""
    import copydetect

    file = f"{name}.cu"
    return copydetect.CodeFingerprint(
        file, NOISE, window, boilerplate=list(known), fp=io.StringIO(text), language="cuda"
    )


def compare(first: Any, second: Any) -> Any:
    """copydetect's comparison of two fingerprints."""
    import copydetect

    return copydetect.compare_files(first, second)


class _Prints:
    """Fingerprints of hand-ins by id, without the template's and without what is common."""

    def __init__(self, hand_ins: Mapping[str, str], template: Sequence[str]) -> None:
        if importlib.util.find_spec("copydetect") is None:
            raise UsageError("`grader similarity` needs copydetect: pip install 'cuda-homework-grader[similarity]'.")
        self._texts, self._bounded = hand_ins, Bounded(_TIME_S, _MEMORY_BYTES)
        self.left_out: list[str] = []
        known: set[int] = set()
        for text in template:  # every k-gram of the template, not a sample, so that none of it slips through
            known |= self._bounded.call(fingerprint, "t", text, [], window=1).hashes
        self._all = self._prints(known)
        if common := _common([print.hashes for print in self._all.values()]):
            self._all = self._prints(known | common)

    def _prints(self, known: set[int]) -> dict[str, Any]:
        """Of every hand-in that can be looked through in time: some text is made to take hours."""
        found = {}
        for name, text in self._texts.items():
            if name not in self.left_out:
                try:
                    found[name] = self._bounded.call(fingerprint, name, text, list(known))
                except Exceeded:
                    self.left_out.append(name)
        return found

    @property
    def marks(self) -> dict[str, set[int]]:
        """The fingerprint of every hand-in as a set of hashes."""
        return {name: print.hashes for name, print in self._all.items()}

    def compare(self, first: str, second: str) -> Pair | None:
        """The exact comparison; None when nothing is shared."""
        try:
            tokens, shares, slices = self._bounded.call(compare, self._all[first], self._all[second])
        except Exceeded:
            self.left_out.append(f"{first} next to {second}")
            return None
        if not tokens:
            return None
        texts = (_pieces(self._texts[name], part) for name, part in zip((first, second), slices, strict=True))
        return Pair(first, second, float(shares[0]), float(shares[1]), int(tokens), *texts)


def _common(prints: Sequence[set[int]]) -> set[int]:
    """What more than half of a large class has. Hand-ins that are alike count once: thirty copies of one hand-in are
    no common knowledge."""
    clusters = _clusters(dict(enumerate(prints)))
    if len(clusters) < _COMMON_FROM:
        return set()
    counts = Counter(mark for cluster in clusters for mark in set[int]().union(*(prints[one] for one in cluster)))
    return {mark for mark, count in counts.items() if count > len(clusters) / 2}


def _clusters(marks: Mapping[Name, set[int]]) -> list[list[Name]]:
    """Hand-ins that are alike, directly or through others, together; each is in one of them, in the given order."""
    names = list(marks)
    leader = {name: name for name in names}

    def find(name: Name) -> Name:
        while leader[name] != name:
            leader[name] = name = leader[leader[name]]
        return name

    for one, other in combinations(names, 2):
        if find(one) != find(other) and _alike(marks[one], marks[other]) >= _ALIKE:
            leader[find(other)] = find(one)
    clusters: dict[Name, list[Name]] = {}
    for name in names:
        clusters.setdefault(find(name), []).append(name)
    return list(clusters.values())


def _alike(one: set[int], other: set[int]) -> float:
    """How much two hand-ins have in common: the share of the larger one, 0 to 1."""
    larger = max(len(one), len(other))
    return len(one & other) / larger if larger else 0.0


def _group(prints: _Prints, members: Sequence[str]) -> Group:
    marks = prints.marks
    middle = max(sorted(members), key=lambda one: sum(_alike(marks[one], marks[other]) for other in members))
    others = sorted(name for name in members if name != middle)
    shares = [_alike(marks[name], marks[middle]) for name in others]
    farthest = others[shares.index(min(shares))]
    return Group((middle, *others), (1.0, *shares), prints.compare(middle, farthest))


def _closest(prints: _Prints, names: Sequence[str], top: int) -> tuple[Pair, ...]:
    marks = prints.marks
    ranked = sorted(combinations(names, 2), key=lambda pair: -_likeness(marks[pair[0]], marks[pair[1]]))
    chosen = ranked[: 4 * top]  # the exact comparison is dear; hashes alone order well enough to choose
    pairs = [pair for one, other in chosen if (pair := prints.compare(one, other)) is not None]
    return tuple(sorted(pairs, key=lambda pair: (-pair.share, -pair.tokens, pair.first, pair.second))[:top])


def _likeness(one: set[int], other: set[int]) -> float:
    """How much of the smaller is in the other, 0 to 1: a part of a hand-in may be copied too."""
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


def render(found: Findings) -> str:
    """Groups, then the closest pairs, as tables."""
    left = [f"Not compared, since it takes too long: {', '.join(found.left_out)}."] if found.left_out else []
    if not found.groups and not found.pairs:
        nothing = f"No two of {found.count} hand-ins share more than the template and what most have."
        return "\n\n".join([nothing, *left])
    blocks = left
    if found.groups:
        groups = [
            (len(group.members), f"{group.least:.0%}", textwrap.fill(", ".join(group.members), 90))
            for group in found.groups
        ]
        blocks.append(tabulate(groups, headers=("group of", "alike at least", "hand-ins"), tablefmt="simple"))
    if found.pairs:
        pairs = [
            (pair.first, f"{pair.first_share:.0%}", pair.second, f"{pair.second_share:.0%}", pair.tokens)
            for pair in found.pairs
        ]
        headers = ("one", "of it shared", "other", "of it shared", "characters")
        blocks.append(tabulate(pairs, headers=headers, tablefmt="simple"))
    if found.groups and found.pairs:
        blocks.append("Of each group, the first stands for all in the pairs.")
    blocks.append("A hint of where to look, not a finding: read both before you think anything.")
    return "\n\n".join(blocks)


def joined(files: Sequence[tuple[str, bytes]]) -> str:
    """The sources of a hand-in as one text, in the order of their names."""
    chosen = [(name, content) for name, content in files if Path(name).suffix in SOURCES]
    return "\n".join(spelled_out(content.decode("utf-8", errors="replace")) for _, content in sorted(chosen))
