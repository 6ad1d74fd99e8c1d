"""A finding: one fact about a program, and the place that it is about."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from grader.base.names import printable_name

MAX_NAME = 200
"""Characters kept of a file's, kernel's or array's name; names of template instances can have thousands."""
MAX_WORD = 120
"""Characters kept of a word among the facts, such as an expression of the source."""
MAX_FACTS = 24
MAX_NUMBERS = 16
"""The most numbers of one fact that is a list, such as the keys that are never used."""
MAX_INT = 2**63 - 1

_PLACED = frozenset({"array", "allocated_file", "allocated_line", "other_file", "other_line"})

Dim3 = tuple[int, int, int]


def _short(most: int) -> BeforeValidator:
    """Makes text printable, on one line, and at most `most` characters long: it may come from a hostile program."""

    def shorten(text: Any) -> Any:
        if not isinstance(text, str):
            return text
        said = printable_name(text[: most + 1])
        return said if len(said) <= most else f"{said[: most - 1]}…"

    return BeforeValidator(shorten)


def _finite(values: Any) -> Any:
    """Leaves out NaN and infinity, such as the ratio of an output with infinities. A list in JSON is a tuple, which
    strict validation does not see behind this function."""
    if not isinstance(values, Mapping):
        return values
    kept = {name: value for name, value in values.items() if not isinstance(value, float) or math.isfinite(value)}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in kept.items()}


Name = Annotated[str, _short(MAX_NAME), Field(max_length=MAX_NAME)]
Word = Annotated[str, _short(MAX_WORD), Field(max_length=MAX_WORD)]
Key = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$", max_length=32)]
Whole = Annotated[int, Field(strict=True, ge=-MAX_INT, le=MAX_INT)]
Count = Annotated[int, Field(ge=0, le=MAX_INT)]
Line = Annotated[int, Field(ge=1, le=10_000_000)]
Number = Whole | float
Threads = tuple[Count, Count, Count]


def _by_type(facts: Mapping[str, object]) -> dict[str, Any]:
    words = {name: fact for name, fact in facts.items() if isinstance(fact, str)}
    return {"words": words, "values": {name: fact for name, fact in facts.items() if name not in words}}


class Place(BaseModel):
    """A line of a file."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    file: Name
    line: Line

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Finding(BaseModel):
    """One fact. `kind` is a word of the catalogue; `certainty`, 0 to 1, is how sure it is that this is a mistake of
    the program, and that it is here. `array` is the name of a variable or allocation, `allocated` the place where the
    program allocated it, `other` the place of the other side, for example the second access of a race. `values` are
    numbers by name, `words` short texts by name, from a small set (`does`: `read`) or from the source (`index`).
    Unknown fields are None or empty. Every size is bounded, whatever a finding is made from."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    kind: Key
    certainty: Annotated[float, Field(ge=0, le=1)] = 1.0
    file: Name | None = None
    line: Line | None = None
    column: Line | None = None
    kernel: Name | None = None
    block: Threads | None = None
    thread: Threads | None = None
    array: Name | None = None
    allocated: Place | None = None
    other: Place | None = None
    values: Annotated[
        Mapping[Key, Number | Annotated[tuple[Number, ...], Field(min_length=1, max_length=MAX_NUMBERS)]],
        BeforeValidator(_finite),
        Field(max_length=MAX_FACTS),
    ] = Field(default_factory=dict)
    words: Annotated[Mapping[Key, Word], Field(max_length=MAX_FACTS)] = Field(default_factory=dict)

    @classmethod
    def from_facts(cls, kind: str, facts: Mapping[str, object], **fields: object) -> Finding:
        """A finding from facts by name, as C reports them: numbers and words, and among them the array and the two
        other places. Raises pydantic's ValidationError, which is a ValueError."""
        known: dict[str, Any] = {"array": facts.get("array") or None}
        for name, file, line in (
            ("allocated", "allocated_file", "allocated_line"),
            ("other", "other_file", "other_line"),
        ):
            if facts.get(file) and facts.get(line):
                known[name] = {"file": facts[file], "line": facts[line]}
        plain = {name: value for name, value in facts.items() if name not in _PLACED and value not in ("", None)}
        return cls.model_validate({"kind": kind, **known, **_by_type(plain), **fields})

    def with_facts(self, **facts: object) -> Finding:
        """This finding with more facts by name: numbers and words."""
        return Finding.model_validate({**self.model_dump(), **_by_type({**self.values, **self.words, **facts})})

    @property
    def place(self) -> Place | None:
        return Place(file=self.file, line=self.line) if self.file and self.line else None

    @property
    def subject(self) -> tuple[object, ...]:
        """What two findings have in common that are the same mistake, in whichever test and thread it was seen."""
        return self.kind, self.file, self.line, self.array, self.other, tuple(sorted(self.words.items()))
