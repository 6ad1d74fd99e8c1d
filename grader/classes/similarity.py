"""Finds submissions that resemble each other: a hint for a person who then reads both, never a score.

It removes comments, layout and names from the code, so that renaming and reformatting change nothing, and compares
fingerprints of the rest made by winnowing (Schleimer, Wilkerson and Aiken, SIGMOD 2003; the library copydetect). Code
from the template, and code that more than half of a large class has, is ignored. Many copies of one submission are
reported as one group instead of a long list of pairs.
"""

from __future__ import annotations

import importlib.util
import io
import sys
import textwrap
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, TypeVar

from pydantic import Field
from tabulate import tabulate

from cudaemu.process import Stopped
from grader.base.errors import UsageError
from grader.base.names import spelled_out
from grader.base.paths import shown
from grader.base.sizes import Count, Whole
from grader.programs.python_main import SUFFIX
from grader.programs.submission import CODE
from grader.sandbox.budget import Budget, drawing
from grader.sandbox.room import Unreadable, confined

Name = TypeVar("Name", bound=Hashable)
Slice = tuple[Count, Count]
Slices = Annotated[tuple[Slice, ...], Field(max_length=1_000_000)]

NOISE = 25
"""Matches of fewer tokens than this are noise (copydetect's default k)."""
_GUARANTEED = 30
"""Matches of at least this many tokens are always found."""
_WINDOW = _GUARANTEED - NOISE + 1
_CPU_S, _MEMORY_BYTES, _MAX_ANSWER = 10, 4 << 30, 32 << 20
"""The limits on the work for each submission, a hundred times what an honest one takes; a pair gets twice the time."""
_PAIRS_CPU_S = 30.0
"""The limit on all comparisons of one submission. A pair counts for the one of the two that takes longer to read."""
_COMMON_FROM = 8
"""In a class of at least this many submissions, code that more than half of them have is ignored."""
LANGUAGES = {"cuda": CODE, "python": frozenset({SUFFIX})}
"""pygments' name of each language, with the suffixes of its files."""

_ALIKE = 0.8
"""Two submissions are alike if they share at least this fraction of the larger fingerprint."""
_MIN_GROUP = 3
"""Two similar submissions are a pair; three or more are a group."""


@dataclass(frozen=True)
class Piece:
    """A stretch of a submission's text, and whether the other submission of the pair has it too."""

    text: str
    shared: bool


@dataclass(frozen=True)
class Pair:
    """Two submissions. `first_share` is the share of the first that is also in the second, 0 to 1; `tokens` is the
    number of characters of the normalised code that they share."""

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
    """Three or more submissions that are nearly the same, reported once instead of pair by pair.

    `members` begins with the submission that is most similar to all others. `shares` has each member's similarity to
    the first, 0 to 1, and `widest` pairs the first with the least similar one."""

    members: tuple[str, ...]
    shares: tuple[float, ...]
    widest: Pair | None

    @property
    def least(self) -> float:
        return min(self.shares)


@dataclass(frozen=True)
class Findings:
    """Groups, largest first, and the closest pairs, in which each group is represented by its first member. `count` is
    the number of submissions that were compared; `left_out` names those that took too long."""

    count: int
    groups: tuple[Group, ...]
    pairs: tuple[Pair, ...]
    left_out: tuple[str, ...] = ()


def resembling(
    submissions: Mapping[str, str], template: Sequence[str], *, top: int = 20, language: str = "cuda"
) -> Findings:
    """Find which `submissions` (sources by id) resemble each other, ignoring what is in `template`: every group and the
    `top` closest pairs. `language` is one of LANGUAGES. Raises UsageError when copydetect is missing."""
    prints = _Prints(submissions, template, language)
    groups = tuple(_group(prints, members) for members in _clusters(prints.marks) if len(members) >= _MIN_GROUP)
    absorbed = {name for group in groups for name in group.members[1:]}
    pairs = _closest(prints, sorted(prints.marks.keys() - absorbed), top)
    ordered = tuple(sorted(groups, key=lambda group: (-len(group.members), group.members)))
    return Findings(len(prints.marks), ordered, pairs, tuple(prints.left_out))


def merged(one: Findings, other: Findings, *, top: int) -> Findings:
    """The findings of two languages as one."""
    groups = sorted((*one.groups, *other.groups), key=lambda group: (-len(group.members), group.members))
    pairs = sorted((*one.pairs, *other.pairs), key=lambda pair: -pair.share)
    return Findings(one.count + other.count, tuple(groups), tuple(pairs[:top]), one.left_out + other.left_out)


@dataclass(frozen=True)
class Overlap:
    """copydetect's comparison of two submissions: the characters of normalised code that they share, what share of each
    that is, and the (start, end) of the shared stretches in the text of each."""

    tokens: Count
    shares: tuple[float, float]
    slices: tuple[Slices, Slices]


@confined(cpu_s=_CPU_S, memory_bytes=_MEMORY_BYTES, answer_bytes=_MAX_ANSWER)
def fingerprint(
    text: str, known: Sequence[int], language: str, *, window: int = _WINDOW
) -> Annotated[list[Whole], Field(max_length=4_000_000)]:
    """The hashes of one submission's fingerprint, without those in `known`."""
    return sorted(int(mark) for mark in _fingerprint(text, known, language, window).hashes)


@confined(cpu_s=2 * _CPU_S, memory_bytes=_MEMORY_BYTES, answer_bytes=_MAX_ANSWER)
def compare(first: str, second: str, known: Sequence[int], language: str) -> Overlap:
    """Compare two submissions exactly."""
    prints = (_fingerprint(text, known, language, _WINDOW) for text in (first, second))
    tokens, shares, slices = _copydetect().compare_files(*prints)
    if not tokens:
        return Overlap(0, (0.0, 0.0), ((), ()))
    one, other = (tuple(sorted(zip(part[0].tolist(), part[1].tolist(), strict=True))) for part in slices)
    return Overlap(int(tokens), (float(shares[0]), float(shares[1])), (one, other))


def _fingerprint(text: str, known: Sequence[int], language: str, window: int) -> Any:
    return _copydetect().CodeFingerprint(
        "x", NOISE, window, boilerplate=list(known), fp=io.StringIO(text), language=language
    )


def _copydetect() -> Any:
    """The library without matplotlib, which wants a folder to write to: the room has none, and nothing is drawn."""
    for name in ("matplotlib", "matplotlib.pyplot"):
        sys.modules.setdefault(name, ModuleType(name))
    import copydetect

    return copydetect


class _Prints:
    """Fingerprints of submissions by id, without the template's code and without common code."""

    def __init__(self, submissions: Mapping[str, str], template: Sequence[str], language: str) -> None:
        if importlib.util.find_spec("copydetect") is None:
            raise UsageError(
                f"`grader similarity` needs copydetect: {shown(Path(sys.executable))} -m pip install 'copydetect>=0.5'."
            )
        self._texts, self._language = submissions, language
        self.left_out: list[str] = []
        self._read_s: dict[str, float] = {}
        self._left_s = dict.fromkeys(submissions, _PAIRS_CPU_S)
        self._known: set[int] = set()
        for text in template:  # window=1 keeps every k-gram of the template, so that all of it is ignored
            self._known |= set(fingerprint(text, [], language, window=1))
        self.marks = self._prints()
        """The fingerprint of every submission as a set of hashes."""
        if common := _common(list(self.marks.values())):
            self._known |= common
            self.marks = self._prints()

    def _prints(self) -> dict[str, set[int]]:
        """The fingerprints of all submissions for which the limits suffice: malicious text could take hours."""
        found = {}
        for name, text in self._texts.items():
            if name not in self.left_out:
                with drawing(Budget(_CPU_S, "reading it")) as spent:
                    try:
                        found[name] = set(fingerprint(text, list(self._known), self._language))
                    except (Unreadable, Stopped):
                        self.left_out.append(name)
                self._read_s[name] = spent.spent_s
        return found

    def compare(self, first: str, second: str) -> Pair | None:
        """Compare two submissions exactly; None when they share nothing, or one of them is left out."""
        if first in self.left_out or second in self.left_out:
            return None
        slower = max(first, second, key=self._read_s.__getitem__)
        with drawing(Budget(self._left_s[slower], "comparing it")) as spent:
            try:
                found = compare(self._texts[first], self._texts[second], list(self._known), self._language)
            except (Unreadable, Stopped):
                self.left_out.append(slower)
                return None
            finally:
                self._left_s[slower] -= spent.spent_s
        if not found.tokens:
            return None
        texts = (_pieces(self._texts[name], part) for name, part in zip((first, second), found.slices, strict=True))
        return Pair(first, second, *found.shares, found.tokens, *texts)


def _common(prints: Sequence[set[int]]) -> set[int]:
    """The hashes that more than half of a large class has. Similar submissions count once, so thirty copies of one
    submission do not make its code common."""
    clusters = _clusters(dict(enumerate(prints)))
    if len(clusters) < _COMMON_FROM:
        return set()
    counts = Counter(mark for cluster in clusters for mark in set[int]().union(*(prints[one] for one in cluster)))
    return {mark for mark, count in counts.items() if count > len(clusters) / 2}


def _clusters(marks: Mapping[Name, set[int]]) -> list[list[Name]]:
    """Group submissions that are alike, directly or through others. Each is in exactly one group; the order is kept."""
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
    """The share of the larger submission that is also in the other one, 0 to 1."""
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
    chosen = ranked[: 4 * top]  # the exact comparison is expensive; hashes alone rank pairs well enough to choose
    pairs = [pair for one, other in chosen if (pair := prints.compare(one, other)) is not None]
    return tuple(sorted(pairs, key=lambda pair: (-pair.share, -pair.tokens, pair.first, pair.second))[:top])


def _likeness(one: set[int], other: set[int]) -> float:
    """The share of the smaller submission that is also in the other one, 0 to 1: a student may copy only a part."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _pieces(text: str, slices: Sequence[Slice]) -> tuple[Piece, ...]:
    pieces, at = [], 0
    for start, end in slices:
        start, end = max(at, start), max(at, end)
        pieces += [Piece(text[at:start], False), Piece(text[start:end], True)]
        at = end
    pieces.append(Piece(text[at:], False))
    return tuple(piece for piece in pieces if piece.text)


def render(found: Findings) -> str:
    """Groups, then the closest pairs, as tables."""
    left = [f"Not compared because it takes too long: {', '.join(found.left_out)}."] if found.left_out else []
    if not found.groups and not found.pairs:
        nothing = f"No two of {found.count} submissions share more than the template and code that most of them have."
        return "\n\n".join([nothing, *left])
    blocks = left
    if found.groups:
        groups = [
            (len(group.members), f"{group.least:.0%}", textwrap.fill(", ".join(group.members), 90))
            for group in found.groups
        ]
        blocks.append(tabulate(groups, headers=("group of", "alike at least", "submissions"), tablefmt="simple"))
    if found.pairs:
        pairs = [
            (pair.first, f"{pair.first_share:.0%}", pair.second, f"{pair.second_share:.0%}", pair.tokens)
            for pair in found.pairs
        ]
        headers = ("one", "of it shared", "other", "of it shared", "characters")
        blocks.append(tabulate(pairs, headers=headers, tablefmt="simple"))
    if found.groups and found.pairs:
        blocks.append("In the pairs, the first of each group stands for the whole group.")
    blocks.append("This is a hint where to look, not a finding: read both before you conclude anything.")
    return "\n\n".join(blocks)


def joined(files: Sequence[tuple[str, bytes]], language: str) -> str:
    """The sources of a submission as one text, in the order of their names."""
    chosen = [(name, content) for name, content in files if Path(name).suffix in LANGUAGES[language]]
    return "\n".join(spelled_out(content.decode("utf-8", errors="replace")) for _, content in sorted(chosen))
