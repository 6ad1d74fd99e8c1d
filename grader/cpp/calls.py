"""Finds the calls of some functions, however they are written.

The text is preprocessed, so macros are replaced. tree-sitter splits it into tokens; a call is then a name, perhaps its
template arguments, closing parentheses, and an opening one. The tree is not asked what is a call: C++ that it takes for
a declaration, or does not know, would hide one. A call through a pointer is not seen.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from grader.base.sizes import Whole
from grader.cpp.tree import leaves_of, line_of, parsed, text_of

MAX_FOUND = 20
_MAX_TEMPLATE = 200
"""More tokens between `<` and `>` are taken for comparisons."""
_BETWEEN = frozenset({"volatile", "__volatile__", "goto", "inline"})
"""Words that may stand between `asm` and its parenthesis."""
_TOKEN = re.compile(rb"\w+|->|[^\s\w]")


class Found(BaseModel):
    """A call, or `asm`: its name, and its line in the text, from 1."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    name: Annotated[str, Field(max_length=200)]
    line: Whole


class Token(NamedTuple):
    text: str
    line: int


def calls_in(text: bytes, patterns: Sequence[Sequence[str]]) -> list[list[Found]]:
    """For each group of patterns (`*` stands for anything), the first calls of functions whose names match one of them.
    To be called in the room."""
    words = ["|".join(re.escape(each).replace(r"\*", r"\w*") for each in group) for group in patterns]
    tokens: list[Token] = []
    if any(group and re.search(rf"\b(?:{group})\b".encode(), text) for group in words):
        tokens = list(_tokens(text))  # not for most programs: a megabyte takes the parser seconds
    return [list(itertools.islice(_matching(tokens, group), MAX_FOUND)) if group else [] for group in words]


def _matching(tokens: Sequence[Token], words: str) -> Iterator[Found]:
    names = re.compile(f"(?:{words})\\Z")
    for at, (name, line) in enumerate(tokens):
        member = at > 0 and tokens[at - 1].text in (".", "->")
        if not member and names.match(name) and _is_called(tokens, at + 1):
            yield Found(name=name[:200], line=line)


def _is_called(tokens: Sequence[Token], at: int) -> bool:
    """Whether what begins at this token makes a call of the name before it."""
    at = _behind_template(tokens, at)
    while at < len(tokens) and (tokens[at].text == ")" or tokens[at].text in _BETWEEN):
        at += 1
    return at < len(tokens) and tokens[at].text == "("


def _behind_template(tokens: Sequence[Token], at: int) -> int:
    """The place behind the template arguments that begin at `at`; `at` if none do."""
    depth = 0
    for place in range(at, min(at + _MAX_TEMPLATE, len(tokens))):
        text = tokens[place].text
        depth += {"<": 1, ">": -1, ">>": -2}.get(text, 0)
        if depth <= 0:
            return place + 1 if place > at else at
        if text in (";", "{"):
            return at
    return at


def _tokens(text: bytes) -> Iterator[Token]:
    """The tokens of the text; a literal is one. What the parser left out, in places that it does not understand, is
    split as well."""
    end = 0
    for leaf in leaves_of(parsed(text)):
        gap = text[end : leaf.start_byte]
        if gap.strip():
            line = text.count(b"\n", 0, end) + 1
            yield from (Token(t[0].decode(errors="replace"), line) for t in _TOKEN.finditer(gap))
        if leaf.type == "comment":
            pass
        elif leaf.type == "ERROR":
            for token in _TOKEN.finditer(leaf.text or b""):
                yield Token(token[0].decode(errors="replace"), line_of(leaf))
        else:
            yield Token(text_of(leaf), line_of(leaf))
        end = max(end, leaf.end_byte)
