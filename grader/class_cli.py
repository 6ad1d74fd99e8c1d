"""The commands for classes: `grader store`, `leaderboard`, `site`, …; commands and their options, nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader import classroom

StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The class's store; by default results/ASSIGNMENT.sqlite."),
]
StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="The store, an SQLite file.", show_default=False)]
AssignmentOption = Annotated[
    str | None, typer.Option("--assignment", metavar="NAME", help="Which assignment, where a store holds several.")
]
BestOption = Annotated[
    bool, typer.Option("--best/--latest", help="Which attempt of a student counts; by default the latest.")
]

store = typer.Typer(no_args_is_help=True, help="Look after the store that holds a class's results.")


@store.command("export")
def store_export(
    path: StoreArgument,
    target: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="Written as JSON lines.", show_default=False)],
) -> None:
    """Write everything as JSON lines: a backup, or what can be saved of a damaged store."""
    print(classroom.export(path, target))


@store.command("import")
def store_import(
    path: StoreArgument,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Exports, or what `grade --json` wrote.")],
) -> None:
    """Merge exports and records into a store; what is there already stays, once."""
    print(classroom.merge(path, files))


@store.command("check")
def store_check(path: StoreArgument) -> None:
    """Read everything again; exit 1 when something is damaged."""
    report, sound = classroom.examine(path)
    print(report)
    if not sound:
        raise typer.Exit(1)


@store.command("vacuum")
def store_vacuum(path: StoreArgument) -> None:
    """Rewrite the file without free space."""
    print(classroom.shrink(path))


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `grader`."""
    app.add_typer(store, name="store")
