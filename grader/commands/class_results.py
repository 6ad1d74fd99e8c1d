"""Turns a store into a leaderboard, a site or a gradebook, and enters points given by hand."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader.base.errors import UsageError
from grader.base.names import say
from grader.base.paths import shown
from grader.base.progress import shown_progress
from grader.classes import attention
from grader.classes.batch import Which
from grader.classes.comparable import mixed
from grader.classes.final_points import Line, absent, gradebook, students_only
from grader.classes.points_file import read_points
from grader.classes.second_draw import second_draw
from grader.commands.rechecking import recheck_leaders
from grader.commands.stores import open_chosen
from grader.course.assignment import assignment_names, load_assignment
from grader.course.coherence import suite_of
from grader.programs.engine import select_engines
from grader.report import gradebook as gradebooks
from grader.report import leaderboard as boards
from grader.report.leaderboard import Board, Names
from grader.site import build_site
from grader.store import Store


@dataclass(frozen=True)
class BoardOptions:
    """The options of a leaderboard: the metric (None: speedup or, if nobody has one, points for correct results), the
    tests, the names of students, the number of rows."""

    metric: str | None = None
    tests: str | None = None
    names: str = "nickname"
    top: int | None = None
    mix_gpus: bool = False


def leaderboard(
    store: Path | None,
    assignment: str | None,
    *,
    form: str,
    best: bool | None,
    options: BoardOptions,
    recheck: bool = False,
) -> str:
    """The leaderboard of a class as text. With `recheck`, the candidates for a place are rechecked first."""
    with open_chosen(store, assignment) as (opened, name):
        which = Which.chosen(name, best)
        lines = gradebook(opened, name, which)
        if recheck:
            _recheck(opened, name, lines, options)
            lines = gradebook(opened, name, which)
    board = board_of(lines, name, options)
    tell(mixed(lines, _rules_now(name)))
    return boards.render(board, form)


def tell(notes: Sequence[str]) -> None:
    """Print notes to stderr, because stdout may go to a file."""
    for note in notes:
        say(f"note: {note}", file=sys.stderr)


def _rules_now(assignment: str) -> str:
    """The checksum of the assignment's current rules; '' if this course no longer has the assignment."""
    return load_assignment(assignment).rules_sha256 if assignment in assignment_names() else ""


def _recheck(store: Store, assignment: str, lines: Sequence[Line], options: BoardOptions) -> None:
    board = board_of(lines, assignment, replace(options, top=None))
    attempts = [line.attempt for line in lines]
    if not board.unchecked:
        return
    rules = load_assignment(assignment)
    engine = select_engines("auto", rules.build.emulator_target)[0]
    with shown_progress() as progress, second_draw(rules, engine, progress) as draw:
        recheck_leaders(store, attempts, board, options.top, draw)


def board_of(lines: Sequence[Line], assignment: str, options: BoardOptions) -> Board:
    """Rank a class as the options ask."""
    tests: tuple[str, ...] = ()
    if options.tests is not None:
        suite = suite_of(load_assignment(assignment))
        tests = tuple(case.name for case in suite.select(options.tests))
    try:
        names = Names(options.names)
    except ValueError as error:
        raise UsageError(f"--names {options.names}: choose one of {', '.join(Names)}.") from error
    if options.metric is None and not tests:
        board, why = boards.default_board(lines, names=names, top=options.top, mix_devices=options.mix_gpus)
        tell([f"Ranked by {board.metric}: {why}"] if why else [])
        return board
    metric = options.metric or "speedup"
    return boards.leaderboard(
        lines, metric=metric, tests=tests, names=names, top=options.top, mix_devices=options.mix_gpus
    )


def site(
    out: Path, store: Path | None, assignment: str | None, *, metric: str | None, best: bool | None, mix: bool
) -> str:
    """Write the pages of a class."""
    with open_chosen(store, assignment) as (opened, name):
        which = Which.chosen(name, best)
        notes = mixed(gradebook(opened, name, which), _rules_now(name))
        built = build_site(opened, name, out, which=which, metric=metric, mix=mix, notes=notes)
    lines = [f"{built.pages} pages of {built.students} students are in {shown(out)}."]
    lines += [f"note: {note}" for note in built.notes]
    lines.append(f"Publish {shown(out / 'public')}; {shown(out / 'assistants')} names all students and is for staff.")
    return "\n".join(lines)


def gradebook_csv(
    store: Path | None, assignment: str | None, *, form: str, columns: str, best: bool | None, partial: bool
) -> str:
    """The gradebook as CSV, for spreadsheets and learning platforms."""
    with open_chosen(store, assignment) as (opened, name):
        lines = students_only(gradebook(opened, name, Which.chosen(name, best)))
        others = absent(opened, name)
    tell(mixed(lines, _rules_now(name)))
    if concerns := attention.render(attention.needs_attention(lines, others)):
        say(concerns, file=sys.stderr)
    if form != "csv" and not partial and lines and not any(line.total is not None for line in lines):
        tell([gradebooks.all_empty(lines, form)])
    chosen = tuple(word.strip() for word in columns.split(",") if word.strip())
    title = load_assignment(name).title
    return gradebooks.render(lines, form, title=title, columns=chosen, partial=partial, absent=others)


def enter_points(file: Path, store: Path | None, assignment: str | None) -> str:
    """Enter points from a CSV file."""
    with open_chosen(store, assignment) as (opened, name):
        entries = read_points(file, load_assignment(name), opened.students())
        opened.set_points(name, entries)
    count = len({entry.student for entry in entries})
    return f"Entered in {shown(opened.path)}: points of {count} student{'s' * (count != 1)}."
