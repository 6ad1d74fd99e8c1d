"""The commands for classes: `grader store`, `leaderboard`, `site`, …, with their options and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.base.names import say
from grader.commands.options import BestOption, StoreOption

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="The store, an SQLite file.", show_default=False)]
AssignmentOption = Annotated[
    str | None, typer.Option("--assignment", metavar="NAME", help="The assignment, if the store has several.")
]
MetricOption = Annotated[
    str | None,
    typer.Option(
        "--metric",
        metavar="NAME",
        help="speedup, gpu_ms, wall_s, occupancy, total or a rubric part; by default speedup or, if nobody has one, "
        "points for correct results.",
    ),
]
BoardTestsOption = Annotated[
    str | None,
    typer.Option(
        "--tests",
        metavar="t23,t21..t30",
        help="Rank by these; by default by all that are repeated.",
    ),
]
NamesOption = Annotated[str, typer.Option("--names", metavar="nickname|anonymous|id", help="The names of students.")]
MixOption = Annotated[
    bool,
    typer.Option("--mix-gpus", help="Compare times of different GPU models and speedups over different CPUs anyway."),
]

points = typer.Typer(no_args_is_help=True, help="Points that assistants enter by hand.")
gradescope = typer.Typer(no_args_is_help=True, help="An autograder for Gradescope.")
store = typer.Typer(no_args_is_help=True, help="Maintain the store with a class's results.")


@store.command("export")
def store_export(
    path: StoreArgument,
    target: Annotated[Path, typer.Argument(metavar="OUT.jsonl", help="A file of JSON lines.", show_default=False)],
) -> None:
    """Write everything as JSON lines, as a backup or to save what is left of a damaged store."""
    from grader.commands import stores

    say(stores.export(path, target))


@store.command("import")
def store_import(
    path: StoreArgument,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Exports, or files that `grade --json` wrote.")
    ],
) -> None:
    """Import exports and records into a store; entries that it already has stay as they are."""
    from grader.commands import stores

    say(stores.import_into(path, files))


@store.command("check")
def store_check(path: StoreArgument) -> None:
    """Read the whole store; exit 1 when something in it is damaged."""
    from grader.commands import stores

    report, sound = stores.examine(path)
    say(report)
    raise typer.Exit(not sound)


@store.command("vacuum")
def store_vacuum(path: StoreArgument) -> None:
    """Rewrite the store's file to remove its unused space."""
    from grader.commands import stores

    say(stores.shrink(path))


def leaderboard(
    store: StoreOption = None,
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="The format.")] = "terminal",
    metric: MetricOption = None,
    tests: BoardTestsOption = None,
    names: NamesOption = "nickname",
    top: Annotated[int | None, typer.Option("--top", metavar="N", min=1, help="Only the first N students.")] = None,
    best: BestOption = None,
    mix_gpus: MixOption = False,
    recheck: Annotated[bool, typer.Option("--recheck", help="First recheck the candidates for a place.")] = False,
    assignment: AssignmentOption = None,
) -> None:
    """Rank a class. Results that the measurement cannot tell apart share a rank; times get none without a recheck."""
    from grader.commands import class_results

    options = class_results.BoardOptions(metric, tests, names, top, mix_gpus)
    say(class_results.leaderboard(store, assignment, form=form, best=best, options=options, recheck=recheck))


def site(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder, or an older site.", show_default=False)],
    store: StoreOption = None,
    metric: MetricOption = None,
    best: BestOption = None,
    mix_gpus: MixOption = False,
    assignment: AssignmentOption = None,
) -> None:
    """Write static pages: OUT/public to publish, OUT/assistants for the staff."""
    from grader.commands import class_results

    say(class_results.site(out, store, assignment, metric=metric, best=best, mix=mix_gpus))


def gradebook(
    store: StoreOption = None,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|canvas|moodle", help="The program that will import the gradebook.")
    ] = "csv",
    columns: Annotated[
        str, typer.Option("--columns", metavar="id,total,...", help="For csv: these columns, in this order.")
    ] = "",
    partial: Annotated[
        bool, typer.Option("--partial", help="For canvas and moodle: the points so far where there is no total yet.")
    ] = False,
    best: BestOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Print the points of a class as CSV: parts, lateness, totals."""
    from grader.commands import class_results

    text = class_results.gradebook_csv(store, assignment, form=form, columns=columns, best=best, partial=partial)
    say(text, end="")


@points.command("import")
def points_import(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="Columns: id, one per part, PART_comment.")],
    store: StoreOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Enter the points of manual parts, such as the report, from a file: all of them or none."""
    from grader.commands import class_results

    say(class_results.enter_points(file, store, assignment))


@gradescope.command("build")
def gradescope_build(
    out: Annotated[Path, typer.Argument(metavar="OUT.zip", help="The autograder to upload.", show_default=False)],
    tests: Annotated[
        str, typer.Option("--tests", metavar="TESTS", help="The testcases that the autograder runs.")
    ] = "public",
    engine: Annotated[str, typer.Option("--engine", metavar="auto|cuda|emulator", help="Where it runs them.")] = "auto",
    secret: Annotated[
        Path | None, typer.Option("--secret", metavar="FILE", help="The secret of the hidden testcases, for the zip.")
    ] = None,
    assignment: AssignmentOption = None,
) -> None:
    """Make the zip with setup.sh and run_autograder."""
    from grader.commands import autograder

    say(autograder.build(out, assignment, tests=tests, engine=engine, secret=secret))


@gradescope.command("run", hidden=True)
def gradescope_run(
    root: Annotated[Path, typer.Option("--root", help="The folder that Gradescope calls /autograder.")],
    tests: Annotated[str, typer.Option("--tests")] = "public",
    engine: Annotated[str, typer.Option("--engine")] = "auto",
    assignment: AssignmentOption = None,
) -> None:
    """Grade one submission inside the container: run_autograder calls this."""
    from grader.commands import autograder

    say(autograder.grade(root, assignment, tests=tests, engine=engine))


def handout(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new folder.", show_default=False)],
    assignment: AssignmentOption = None,
) -> None:
    """Write the folder that students get: handout, template, samples and the grader; no solutions, no secret."""
    from grader.base.paths import shown
    from grader.commands.handout import build_handout
    from grader.course.assignment import chosen_assignment

    rules = chosen_assignment(assignment)
    names = build_handout(out, rules)
    say(f"{shown(out)}: {len(names)} files of {rules.name} for students; README.md there says how to begin.")


def diff(
    first: Annotated[str, typer.Argument(metavar="RECORD", help="A JSON file, an id in the store, or ID#ATTEMPT.")],
    second: Annotated[str, typer.Argument(metavar="RECORD", help="The record to compare with the first.")],
    store: StoreOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Show two results side by side, and everything that makes them incomparable."""
    from grader.commands import complaints

    say(complaints.difference(first, second, store, assignment))


def rerun(
    student: Annotated[str, typer.Argument(metavar="ID", help="A student in the store, or ID#ATTEMPT.")],
    twice: Annotated[bool, typer.Option("--twice", help="Run twice, and show how the runs differ.")] = False,
    engine: Annotated[str | None, typer.Option("--engine", help="By default the record's engine.")] = None,
    store: StoreOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Grade a student's stored files again and say what differs; the store is not changed."""
    from grader.commands import complaints

    say(complaints.rerun(student, store, assignment, engine=engine, twice=twice))


def similarity(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The submissions of a class.", show_default=False)],
    top: Annotated[int, typer.Option("--top", metavar="N", min=1, help="The number of pairs.")] = 20,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with the pairs.")] = None,
    assignment: AssignmentOption = None,
) -> None:
    """List the submissions that resemble each other most: a hint for a person, never a score."""
    from grader.commands import resemblance

    say(resemblance.similarity(folder, assignment, top=top, html=html))


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `grader`."""
    app.command()(handout)
    app.command()(diff)
    app.command()(rerun)
    app.command()(similarity)
    app.command()(gradebook)
    app.add_typer(points, name="points")
    app.add_typer(gradescope, name="gradescope")
    app.command()(site)
    app.command()(leaderboard)
    app.add_typer(store, name="store")
