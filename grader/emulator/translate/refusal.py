"""Refusals: the translator refuses instructions and functions that it cannot translate, and never guesses."""

from __future__ import annotations

from dataclasses import dataclass

from grader.emulator.ptx.model import Loc
from grader.emulator.translate.lacking import ON_A_GPU


@dataclass(frozen=True, slots=True)
class Finding:
    """A feature that the emulator lacks: its name, where the student's code uses it, and advice."""

    what: str
    file: str | None
    line: int | None
    advice: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}: " if self.file and self.line else ""
        return f"{place}{self.what} is not supported by the emulator; {self.advice}"


class Refused(Exception):
    """The refusal of one instruction. `translate_module` turns it into a `Finding`."""

    def __init__(self, what: str, loc: Loc, advice: str = ON_A_GPU) -> None:
        super().__init__(what)
        self.what, self.loc, self.advice = what, loc, advice
