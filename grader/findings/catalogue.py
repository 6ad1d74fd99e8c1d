"""What a catalogue of one language holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Catalogue:
    """For each kind a fact and an advice; words for the findings' own words, by their name; and the phrases that join
    them."""

    sentences: Mapping[str, tuple[str, str]]
    words: Mapping[str, Mapping[str, str]]
    phrases: Mapping[str, str]
