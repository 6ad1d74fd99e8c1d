"""Draws what pages show of a submission's own bytes, in the room (`grader.sandbox.room`): its report with the annotated
sources, and the differences of two submissions. `budget` decides who may have how much drawn."""

from __future__ import annotations

import functools
import re
from datetime import UTC, datetime
from typing import Annotated, Any

import jinja2
from markupsafe import Markup
from pydantic import Field

from grader.classes.batch.view import duration
from grader.classes.final_points import Line, days_words
from grader.records.record import Record
from grader.report.explain import compare
from grader.report.source_diff import changes
from grader.sandbox.room import confined
from grader.site.annotate import code
from grader.site.record_page import environment, report_of
from grader.store import Compressed, Files, decompressed

MOST_BYTES = 1 << 20
_SHOWN_LINES, _SHOWN_BYTES = 4000, 300_000
Drawn = Annotated[str, Field(max_length=MOST_BYTES)]
"""HTML, made by our templates, which escape everything."""


@functools.cache
def pages() -> jinja2.Environment:
    """The templates of the judge and of the site."""
    sites = environment()
    assert sites.loader is not None
    found = sites.overlay(loader=jinja2.ChoiceLoader([jinja2.PackageLoader("grader.judge"), sites.loader]))
    found.filters["clock"] = lambda seconds: datetime.fromtimestamp(seconds, UTC).strftime("%m-%d %H:%M:%S")
    found.filters["prose"] = _prose
    found.filters["wait"], found.filters["days"] = duration, days_words
    return found


def _prose(text: str) -> Markup:
    """A sentence as HTML: commands between backticks as code, and files of the server without their folders."""
    return code(re.sub(r"(?<![\w.~/-])/(?:[^\s/:,;()`]+/)+(?=[^\s/])", "…/", str(text)))


@confined(answer_bytes=2 * MOST_BYTES)
def drawn_report(main: str, line: Line, sources: Compressed) -> Drawn:
    """The report of an attempt as HTML: without its sources if it is too large with them."""

    def drawn(shown: Files) -> str:
        values: dict[str, Any] = {"root": "/static", "main": main}
        values["report"] = report_of(line.attempt.record, shown, line)
        return pages().get_template("report.part.j2").render(values)

    with_sources = drawn(_shown(decompressed(sources)))
    return with_sources if len(with_sources) <= MOST_BYTES else drawn(())


def _shown(sources: Files) -> Files:
    """The sources up to a number of lines and bytes; the last line that is shown says that more follow."""
    found, lines, size = list[tuple[str, bytes]](), 0, 0
    for name, content in sources:
        kept = content[: _SHOWN_BYTES - size].splitlines(keepends=True)[: _SHOWN_LINES - lines]
        lines, size = lines + len(kept), size + sum(map(len, kept))
        cut = b"".join(kept)
        more = len(content) - len(cut)
        found.append((name, cut if not more else cut + f"\n… and {more:,} bytes that this page does not show".encode()))
    return tuple(found)


@confined(answer_bytes=2 * MOST_BYTES)
def drawn_difference(before: Compressed, after: Compressed, records: list[Record]) -> Drawn:
    """The changes between two submissions as HTML: of their sources, and of the numbers of their records if there are
    two. difflib takes hours for some texts, and the caller's limits end it."""
    lines = changes(decompressed(before), decompressed(after))
    numbers = compare(records[0], records[1], headings=("before", "after")) if len(records) == 2 else ""
    return pages().get_template("difference.part.j2").render(lines=lines, numbers=numbers)
