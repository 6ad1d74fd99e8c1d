"""Shows the progress of long work on stderr: a live bar on a terminal, occasional lines elsewhere."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Task, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.text import Text


class Progress:
    """Receives progress reports from a long-running task and ignores them; subclasses show them."""

    def stage(self, text: str, total: int | None = None) -> None:
        """A new stage begins, of `total` steps if that is known."""

    def advance(self, done: int) -> None:
        """`done` steps of the stage are finished."""

    def step(self, name: str, ended: str = "") -> None:
        """Without `ended`, the step `name` begins. With `ended`, the step has ended, and `ended` is its result in a few
        words."""

    def line(self, text: str) -> None:
        """Report `text` on a separate line."""


class _Plain(Progress):
    """One line per stage and per finished step, for logs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def stage(self, text: str, total: int | None = None) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def step(self, name: str, ended: str = "") -> None:
        if ended:
            self.stage(f"{name} {ended}")

    def line(self, text: str) -> None:
        self.stage(text)


class _Live(Progress):
    """One bar, whose text changes from stage to stage, with the current step and the last finished one."""

    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, now="", last="")

    def stage(self, text: str, total: int | None = None) -> None:
        self._bar.reset(self._task, description=text, total=total, now="", last="")

    def advance(self, done: int) -> None:
        self._bar.update(self._task, completed=done)

    def step(self, name: str, ended: str = "") -> None:
        if ended:
            self._bar.update(self._task, last=f"{name} {ended}")
        else:
            self._bar.update(self._task, now=name)

    def line(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)


class _Count(MofNCompleteColumn):
    """The number of finished steps; nothing if it is not known how many there are."""

    def render(self, task: Task) -> Text:
        return super().render(task) if task.total is not None else Text()


@contextlib.contextmanager
def shown_progress() -> Iterator[Progress]:
    """Show progress on stderr while the block runs; a live bar disappears at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Plain(console)
        return
    columns = (
        TextColumn("{task.description} {task.fields[now]}", markup=False),
        BarColumn(bar_width=20),
        _Count(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[last]}", markup=False),
    )
    with RichProgress(*columns, console=console, transient=True) as bar:
        yield _Live(bar)
