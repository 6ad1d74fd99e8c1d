"""Shows the progress of grading a class: a live view on a terminal, else one line per finished submission."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from grader.base.verdict import Verdict
from grader.records.record import Record

_FAILURES_SHOWN = 8


@dataclass
class Tally:
    """The counts of one grading of a class so far."""

    total: int = 0
    kept: int = 0
    rescored: int = 0
    graded: int = 0
    faulted: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    @property
    def finished(self) -> int:
        return self.kept + self.rescored + self.graded

    @property
    def graded_before(self) -> str:
        """ ", 3 were graded before, 2 have new points from their stored measurements"; '' if there are none."""
        words = f", {self.kept} {'was' if self.kept == 1 else 'were'} graded before" if self.kept else ""
        if self.rescored:
            words += f", {self.rescored} ha{'s' if self.rescored == 1 else 've'} new points from stored measurements"
        return words

    def count(self, record: Record) -> None:
        """Count one more finished submission."""
        self.graded += 1
        self.outcomes[outcome(record)] += 1

    def pace(self) -> str:
        """The number of submissions graded per minute, and an estimate of the time left."""
        elapsed = time.monotonic() - self.began
        if not self.graded or elapsed <= 0:
            return "time left not known yet"
        rate = self.graded / elapsed
        return f"{rate * 60:.1f} a minute, {duration((self.total - self.finished) / rate)} left"


def outcome(record: Record) -> str:
    """The outcome of a submission as a whole, in a few words."""
    if record.infrastructure_failed:
        return "machine or grader fault"
    if not record.build.ok:
        return "not built"
    failed = sum(test.verdict is not Verdict.PASSED for test in record.tests)
    return "all passed" if not failed else "some failed" if failed < len(record.tests) else "all failed"


def line(called: str, record: Record, where: str, seconds: float) -> str:
    """Describe a finished submission in one line."""
    passed = sum(test.verdict is Verdict.PASSED for test in record.tests)
    points = sum(part.points or 0 for part in record.parts)
    most = sum(part.max for part in record.parts if part.points is not None)
    text = f"{passed} of {len(record.tests)} passed, {points:g} of {most:g} points"
    if record.infrastructure_failed or not record.build.ok:
        first = next((test.reason for test in record.tests if test.verdict is not Verdict.PASSED), "")
        text = f"{outcome(record)}: {first_line(first)[:160]}"
    return f"{called}: {text} ({seconds:.1f} s{f' on {where}' if where else ''})"


def first_line(text: str) -> str:
    """The first line of a message; a compiler's output may follow on further lines."""
    return text.strip().split("\n", 1)[0]


def duration(seconds: float) -> str:
    """Seconds in words: 2 h 05 min, 12 min, 40 s."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 90 else f"{minutes} min"


class View:
    """Receives reports on the progress of a run. This class ignores them; subclasses show them."""

    def working(self, lane: str, student: str | None) -> None:
        """A lane now runs this student's submission; with None it is idle."""

    def finished(self, tally: Tally, called: str, record: Record, where: str, seconds: float) -> None:
        """The submission of the student `called` so was graded, in `seconds` on the lane or node `where`."""

    def kept(self, tally: Tally) -> None:
        """A submission needs no grading: an earlier run graded it."""

    def say(self, text: str) -> None:
        """Report `text` on a line."""


class Log(View):
    """Prints lines, for a log."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def finished(self, tally: Tally, called: str, record: Record, where: str, seconds: float) -> None:
        width = len(str(tally.total))
        self.say(f"[{tally.finished:{width}}/{tally.total}] {line(called, record, where, seconds)} · {tally.pace()}")


class Screen(Log):
    """A live view: counts, pace, what each lane does, and the latest failures."""

    def __init__(self, console: Console, live: Live) -> None:
        super().__init__(console)
        self._live = live
        self._tally = Tally()
        self._lanes: dict[str, str] = {}
        self._failures: list[str] = []

    def working(self, lane: str, student: str | None) -> None:
        self._lanes[lane] = student or "idle"
        self._draw()

    def finished(self, tally: Tally, called: str, record: Record, where: str, seconds: float) -> None:
        if outcome(record) != "all passed":
            self._failures = [*self._failures, line(called, record, where, seconds)][-_FAILURES_SHOWN:]
        self.kept(tally)

    def kept(self, tally: Tally) -> None:
        self._tally = tally
        self._draw()

    def _draw(self) -> None:
        tally = self._tally
        counts = ", ".join(f"{count} {what}" for what, count in tally.outcomes.most_common())
        lanes = Table.grid(padding=(0, 2))
        for lane, student in self._lanes.items():
            lanes.add_row(Text(lane, style="dim"), Text(student))
        self._live.update(
            Group(
                Text(f"{tally.finished} of {tally.total} · {tally.pace()}"),
                ProgressBar(total=max(1, tally.total), completed=tally.finished, width=60),
                Text((counts + tally.graded_before).removeprefix(", ")),
                lanes,
                *(Text(failure, style="yellow", no_wrap=True, overflow="ellipsis") for failure in self._failures),
            )
        )


@contextlib.contextmanager
def shown() -> Iterator[View]:
    """Show the progress of a run on stderr while the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Log(console)
        return
    with Live(console=console, transient=True, refresh_per_second=4) as live:
        yield Screen(console, live)
