"""Processes for heavy numpy work, with one core each.

numpy's BLAS starts as many threads as there are cores, and they slow each other down on the small tiles of an oracle.
So processes with one BLAS thread each (`grader.ONE_BLAS_THREAD`) do the work, one small task at a time. Tasks write
their results into files, each at its offset, and return little: a number, a few sums.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterable
from typing import TypeVar

from grader.base.errors import MachineFault
from grader.base.remote import Lost, Remote

Task = TypeVar("Task")
Result = TypeVar("Result")
Work = Callable[[Task], Result]
"""A module-level function. `run_tasks` passes its result, for example the number of bytes done, to `done`."""


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def run_tasks(
    work: Work[Task, Result],
    tasks: Iterable[Task],
    processes: int,
    done: Callable[[Result], None] = lambda result: None,
) -> None:
    """Run every task in `processes` processes, or in this process if `processes` is 0.

    The first error of a task ends the others and is raised here. Ctrl-C ends them too. Raises MachineFault when a
    process ends before its task is done.
    """
    waiting = list(tasks)
    if processes == 0:
        for task in waiting:
            done(work(task))
        return
    waiting.reverse()
    crew = [Remote() for _ in range(min(processes, len(waiting)))]
    busy = list(crew)
    try:
        for worker in crew:
            worker.begin(work, waiting.pop())
        while busy:
            for worker in select.select(busy, [], [])[0]:
                done(worker.answer())
                if waiting:
                    worker.begin(work, waiting.pop())
                else:
                    busy.remove(worker)
    except Lost as lost:
        raise MachineFault(
            "A worker process of the grader ended before its task was done (killed, or out of memory); "
            "free memory, then repeat the command."
        ) from lost
    finally:
        for worker in crew:
            worker.close()
