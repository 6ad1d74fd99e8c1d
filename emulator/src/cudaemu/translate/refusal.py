"""Refusals: the translator refuses instructions and functions that it cannot translate, and never guesses."""

from __future__ import annotations

from cudaemu.lacking import ON_A_GPU
from cudaemu.ptx.model import Loc


class Refused(Exception):
    """The refusal of one instruction. `translate_module` turns it into a `MissingFeature`."""

    def __init__(self, what: str, loc: Loc, advice: str = ON_A_GPU) -> None:
        super().__init__(what)
        self.what, self.loc, self.advice = what, loc, advice
