"""The fair order of a queue, and the predicted wait of each place in it. `ledger` stores the tags and the clock.

Start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM 1996): when a submission arrives, its tag is the larger of
two numbers: the queue's clock, and the tag of the student's last submission plus the lane time that it took. The
smallest tag is served next, and the clock is the largest tag served so far. A student who was not served recently gets
the clock as tag, and so goes ahead of those who were. No student is overtaken twice by the same student, so none waits
longer than it takes to serve every other student once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Place:
    """A waiting submission. The highest `priority` is served first and, within a priority, the smallest `tag`."""

    number: int
    student: str
    priority: int
    tag: float


def in_order(waiting: Iterable[Place]) -> list[Place]:
    """The order in which places are served."""
    return sorted(waiting, key=lambda place: (-place.priority, place.tag, place.number))


def next_place(waiting: Iterable[Place], running: frozenset[str]) -> Place | None:
    """The place that is served next; None if there is none. Students in `running` are skipped: one of their submissions
    is being served already."""
    return next((place for place in in_order(waiting) if place.student not in running), None)


def waits(waiting: Iterable[Place], lanes: Sequence[float], seconds: float) -> dict[int, float]:
    """The predicted seconds until each place is done, by number, if every run takes `seconds`. `lanes` has the seconds
    until each lane is free; without lanes the result is empty, since the wait is unknown."""
    free = list(lanes)
    heapq.heapify(free)
    found = {}
    for place in in_order(waiting):
        if not free:
            break
        found[place.number] = heapq.heapreplace(free, free[0] + seconds) + seconds
    return found
