"""Handles hidden testcases: their order, their second draws, and what a student may read about them.

Their values come from the secret. Even so, a testcase's file may leak, or a program may recognise its input. A second
draw reveals both: every grading runs a few testcases, chosen anew each time, on values that were in no file before and
that no grading will use again.
"""

from __future__ import annotations

import contextlib
import random
import secrets
import threading
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from grader.base.errors import MachineFault
from grader.course.assignment import HiddenInputs
from grader.course.catalogue import TestcaseFiles, generate
from grader.course.testcase import Case, Suite
from grader.sandbox.scratch import remove_soon, scratch_folder

_dice = random.SystemRandom()

FILES_AT_ONCE = 2
"""The number of cases whose newly drawn files may exist at the same time: as many as are usually drawn again. The files
are made while programs are profiled, which takes longer, so no run waits for them."""


def shuffled(cases: Sequence[Case]) -> list[Case]:
    """The cases in random order."""
    return _dice.sample(cases, len(cases))


def to_draw_again(rules: HiddenInputs, suite: Suite, passed: Collection[Case]) -> list[Case]:
    """Choose the hidden cases for a second draw from those that passed; in the suite's order."""
    passed = [case for case in suite.select(rules.fresh_from) if case.hidden and case in passed]
    chosen = _dice.sample(passed, min(rules.fresh, len(passed)))
    return [case for case in passed if case in chosen]


class _GivenUp(Exception):
    """Raised to stop making files."""


@contextlib.contextmanager
def fresh_files(suite: Suite, cases: Sequence[Case]) -> Iterator[Iterator[tuple[Case, TestcaseFiles]]]:
    """Yields each case with files of newly drawn values, which exist until the caller asks for the next case. A thread
    makes the files, starting immediately; those of at most FILES_AT_ONCE cases exist at a time."""
    given_up = threading.Event()

    def go_on(done: int, total: int) -> None:
        if given_up.is_set():
            raise _GivenUp

    def make(place: Path, case: Case) -> TestcaseFiles:
        files = TestcaseFiles(place / case.name)
        try:
            files.folder.mkdir()
        except OSError as error:
            raise MachineFault(f"{place}: no folder could be created: {error.strerror}; free some space.") from error
        generate(case, files, suite.fresh_seed(case, secrets.token_hex(16)), go_on)
        return files

    def each(ahead: deque[Future[TestcaseFiles]]) -> Iterator[tuple[Case, TestcaseFiles]]:
        for number, case in enumerate(cases):
            files = ahead.popleft().result()
            yield case, files
            remove_soon(files.folder)
            if following := cases[number + FILES_AT_ONCE :]:
                ahead.append(background.submit(make, folder, following[0]))

    with scratch_folder("fresh", linger=True) as folder, ThreadPoolExecutor(1) as background:
        try:
            yield each(deque(background.submit(make, folder, case) for case in cases[:FILES_AT_ONCE]))
        finally:
            given_up.set()


def drawn_sentence(drawn: Sequence[Case], cases: Sequence[Case], missed: str = "") -> str:
    """The record's sentence on second draws; '' if no testcase was hidden. `missed` is the reason why the machine could
    not run all of them."""
    hidden = sum(case.hidden for case in cases)
    if not hidden:
        return ""
    names = f" ({', '.join(case.name for case in drawn)})" if drawn else ""
    run = "was" if len(drawn) == 1 else "were"
    said = f"{len(drawn)} of {hidden} hidden testcases{names} {run} also run on values drawn for this grading alone."
    return f"{said} The machine could not run the others: {missed}" if missed else said


def shows_diagnosis(rules: HiddenInputs, case: Case) -> bool:
    """Whether a student may read the likely cause of a wrong answer on `case`."""
    return not case.hidden or rules.show == "diagnosis"
