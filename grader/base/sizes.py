"""Types of bounded size, for values that are made from what submissions, compilers and other people's files contain.

`AtMost` cuts what is longer and so never fails: for what a record quotes. `Field(max_length=...)` refuses it: for what
only an attacker would send, and for answers of the room, which are validated strictly. Either way the model's JSON
schema states the bound, and tests/test_sizes.py finds a field without one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

MAX_INT = 2**63 - 1
MAX_NAME = 400
MAX_SENTENCE = 2000
MAX_TEXT = 16_000


@dataclass(frozen=True)
class AtMost:
    """Of a text, the first `size` characters are kept, the last of them "…" if something is missing; of a sequence or a
    mapping, the first `size` items. If `rest` is given, the last item of a longer sequence is this text, with the
    number of missing items."""

    size: int
    rest: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._cut, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        found = handler(schema)
        limit = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}[found["type"]]
        return found | {limit: self.size}

    def _cut(self, given: Any) -> Any:
        if isinstance(given, str):
            return given if len(given) <= self.size else f"{given[: self.size - 1]}…"
        if isinstance(given, list | tuple):
            if len(given) <= self.size:
                return given
            if not self.rest:
                return given[: self.size]
            return (*given[: self.size - 1], self.rest.format(len(given) - self.size + 1))
        if isinstance(given, dict) and len(given) > self.size:
            return dict(list(given.items())[: self.size])
        return given


def _in_the_calendar(text: str) -> str:
    if not 1 < datetime.fromisoformat(text).year < 9999:
        raise ValueError("no year of ours")
    return text


Time = Annotated[str, Field(max_length=64), AfterValidator(_in_the_calendar)]
"""ISO 8601."""
Name = Annotated[str, AtMost(MAX_NAME)]
"""Of a test, a file, a kernel, a person, a device."""
Sentence = Annotated[str, AtMost(MAX_SENTENCE)]
"""For a person: a sentence or a short paragraph."""
Text = Annotated[str, AtMost(MAX_TEXT)]
"""Lines that a compiler or a program wrote."""
Digest = Annotated[str, Field(max_length=64)]
"""A SHA-256, or ''."""
Whole = Annotated[int, Field(ge=-MAX_INT - 1, le=MAX_INT)]
Count = Annotated[int, Field(ge=0, le=MAX_INT)]
Names = Annotated[tuple[Name, ...], AtMost(1000)]
Sentences = Annotated[tuple[Sentence, ...], AtMost(20, "{:,} more of this kind.")]
