"""What an emulated program can do besides running."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Extras:
    """With `watch` a program looks for races and uninitialised reads. With `record` it can record where its values come
    from (runtime/values.c). With `count` its trace has counters (runtime/counters.h)."""

    watch: bool = False
    record: bool = False
    count: bool = False
    few_runs: bool = False
    """The program is built in a third of the time, runs several times as long, and any kernel fits."""
    launched: tuple[str, ...] = ()
    """The kernels that count, by their names in a trace: others do nothing. If one is unknown, or for (), all count."""
    short_runs: bool = False
    """The program runs on samples, in less time than gcc would take: its kernels are threaded code alone."""


NONE = Extras()
