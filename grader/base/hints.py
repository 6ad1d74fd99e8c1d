"""Hints: what explains a verdict and never decides one. A hint that fails is left out, and the staff's log says so."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import ParamSpec, TypeVar

log = logging.getLogger(__name__)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_reported: set[tuple[str, str, int]] = set()
"""The mistakes that the log has already, by the kind of the exception, the file and the line."""


def hint(
    otherwise: Result, explain: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Result:
    """`explain(…)`, or `otherwise` if it fails: a mistake of the grader's, or an input that nobody thought of, must not
    cost a student the verdict."""
    try:
        return explain(*arguments, **named)
    except Exception as bug:
        report(bug)
        return otherwise


def report(bug: Exception) -> None:
    """Log a failure in one line, once for each place: a submission must not fill the log. The traceback follows where
    the log has details."""
    last = traceback.extract_tb(bug.__traceback__)[-1]
    place = type(bug).__name__, last.filename, last.lineno or 0
    if place not in _reported:
        _reported.add(place)
        inside = getattr(bug, "detail", "").strip().rpartition("\n")[2]  # of an exception in the room
        said = " ".join(f"{place[0]}: {bug} {inside}".split())[:300]
        log.error("A diagnosis failed, so no cause is named: %s (%s:%s)", said, *place[1:])
        log.debug("The failed diagnosis", exc_info=bug)
