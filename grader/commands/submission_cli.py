"""The commands for submissions: `grader check`, `grade`, `run`, `profile`, …, with their options and nothing else."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from grader.base.errors import GraderFault, UsageError
from grader.base.names import say
from grader.base.verdict import Verdict
from grader.commands.options import (
    ArchOption,
    AssignmentOption,
    BestOption,
    EngineOption,
    JsonOption,
    LangOption,
    RequireSandboxOption,
    SarifOption,
    ShowOption,
    StoreOption,
    SubmissionArgument,
    TestsOption,
    VerboseOption,
    speak,
)

_PROFILED_LAUNCHES = 48
"""The default for --launches: about this many launches are profiled, however many the program makes."""

CLASS_RULE = (
    "A folder is one submission if its .cu files are at its top level, or all in one subfolder. It is a class if two "
    "or more subfolders have .cu files. It is also a class if it has two or more .cu files and no Makefile, and each "
    ".cu file is a complete program with another name than the assignment asks for. --class makes any folder a class."
)
"""What distinguishes a class from a submission, as `grader.classes.batch.is_class` decides it."""


def check(
    submission: SubmissionArgument,
    assignment: AssignmentOption = None,
    tests: TestsOption = "public",
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    json: JsonOption = None,
    sarif: SarifOption = None,
    lang: LangOption = None,
    sanitize: Annotated[
        str | None,
        typer.Option("--sanitize", metavar="FAULTS", help="Look on one sample for memory,race,init,sync or all."),
    ] = None,
    gradcheck: Annotated[
        bool, typer.Option("--gradcheck", help="Check gradients against central differences, on one sample.")
    ] = False,
    require_sandbox: RequireSandboxOption = False,
    show: ShowOption = 0,
    verbose: VerboseOption = False,
) -> None:
    """Check a submission on the public testcases; exit 1 when one fails. Meant for students."""
    from grader import sanitizers
    from grader.commands import submissions
    from grader.commands.choice import Choice
    from grader.report import terminal

    speak(lang)
    choice = Choice(assignment, tests, engine, arch)
    if gradcheck:
        from grader.commands import gradients

        right, text = gradients.check_gradients(submission, choice)
        say(text)
        raise typer.Exit(not right)
    checks = sanitizers.parse_checks(sanitize) if sanitize else ()
    records = submissions.grade_paths(
        [submission], choice, json=json, require_sandbox=require_sandbox, show=show, quick=True
    )
    if sarif is not None:
        from grader.commands import report_files

        report_files.write_reports(records, sarif=sarif)
    say(terminal.render_check(records[0], verbose=verbose), paint=_paint())
    found = 0
    if checks and records[0].build.ok:
        from grader.commands import inspection

        sample = inspection.sample_to_sanitize(records[0])
        reports = inspection.sanitize_program(submission, Choice(assignment, sample, engine, arch), checks)
        say(f"\nOn {sample}:\n{sanitizers.render(reports)}")
        found = sum(report.errors for report in reports)
    elif terminal.lacks_a_cause(records[0]):
        say(f"To see what is wrong, line by line: grader check {shlex.quote(str(submission))} --sanitize all")
    if found or any(test.verdict is not Verdict.PASSED for test in records[0].tests):
        raise typer.Exit(1)
    if records[0].engine.name == "emulator" and sys.stdout.isatty():  # it takes some seconds
        from grader.commands import estimating

        if line := estimating.hint(submission, assignment):
            say(f"\n{line}")


def grade(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATH...", help="Submissions (.cu or .py files, or folders), or a class's folder."),
    ],
    assignment: AssignmentOption = None,
    tests: TestsOption = None,
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    json: JsonOption = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page here.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here.")] = None,
    sarif: SarifOption = None,
    lang: LangOption = None,
    store: StoreOption = None,
    roster: Annotated[
        Path | None, typer.Option("--roster", metavar="CSV", help="Class: ids, names, nicknames, extensions.")
    ] = None,
    rerun: Annotated[
        str | None,
        typer.Option(
            "--rerun", metavar="WHICH", help="Class: grade again failed, machine-faults, older, all, or ID,ID."
        ),
    ] = None,
    best: BestOption = None,
    as_class: Annotated[bool, typer.Option("--class", help="Treat the folder as a class.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Class on the emulator: grade N at once.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="slurm", help="Class: grade on the cluster of assignment.yaml.")
    ] = None,
    timings: Annotated[bool, typer.Option("--timings", help="Show the time of each step.")] = False,
    show: ShowOption = 0,
    require_sandbox: RequireSandboxOption = False,
    estimate_only: Annotated[
        bool, typer.Option("--estimate-only", help="Class: only predict how long it will need an H100.")
    ] = False,
    verbose: VerboseOption = False,
) -> None:
    """Grade submissions: verdicts, times, score. Exit 0 if all of them could be graded, whatever their scores.

    The results of a class go into a store. After an interruption, the same command continues where it stopped.
    """
    from grader import sandbox
    from grader.commands import report_files, submissions
    from grader.commands.choice import Choice
    from grader.report import explain as explanation
    from grader.report import terminal

    speak(lang)
    choice = Choice(assignment, tests, engine, arch)
    if require_sandbox:
        sandbox.require()
    if estimate_only:
        from grader.commands import estimating

        plan, served = estimating.class_plan(paths, assignment)
        say(plan)
        raise typer.Exit(not served)
    may_be_class = as_class or any(option is not None for option in (roster, rerun, cluster))
    may_be_class |= any(path.is_dir() for path in paths)
    if may_be_class:
        from grader.commands import classroom

        options = classroom.ClassOptions(store, roster, rerun, best, as_class, jobs, cluster)
        if classroom.wanted(paths, choice, options):
            if html is not None:
                raise UsageError("--html is for single submissions; `grader site OUT` makes the pages of a class.")
            summary, judged = classroom.grade(paths, choice, options, json=json, junit=junit)
            say(summary)
            raise typer.Exit(not judged)
    records = submissions.grade_paths(paths, choice, json=json, require_sandbox=require_sandbox, show=show)
    if store is not None:
        from grader.commands import classroom

        classroom.keep(records, store)
    line = f"\n{'=' * terminal.WIDTH}\n"
    text, missing = report_files.rendered(
        records, lambda some: line.join(terminal.render(record, verbose=verbose) for record in some)
    )
    say(text, paint=_paint())
    report_files.write_reports(records, html, junit, sarif)
    if missing:
        raise GraderFault(missing)
    if timings:
        say("\n" + "\n\n".join(explanation.render_timings(record) for record in records))
    if any(record.infrastructure_failed for record in records):
        raise typer.Exit(1)


def run(
    program: SubmissionArgument,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="The program's arguments and options.")
    ] = None,
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    assignment: AssignmentOption = None,
    sanitize: Annotated[
        str | None,
        typer.Option("--sanitize", metavar="FAULTS", help="Look on the emulator for memory,race,init,sync or all."),
    ] = None,
) -> None:
    """Build and run any program; its output and exit code are the program's own.

    Everything after the program's name is passed to it, except the options of this command. After --, even these are.
    """
    from grader.commands import submissions
    from grader.commands.choice import Choice

    given = {"--engine": engine, "--arch": arch, "--assignment": assignment, "--sanitize": sanitize}
    rest = _without_options(arguments or [], given)
    choice = Choice(given["--assignment"], None, given["--engine"] or "auto", given["--arch"])
    raise typer.Exit(submissions.run_program(program, rest, choice, sanitize=given["--sanitize"] or ""))


def _paint() -> Callable[[str], str] | None:
    from grader.report import colour

    return colour.coloured if colour.wants_colour(sys.stdout) else None


def _without_options(words: Sequence[str], options: dict[str, str | None]) -> list[str]:
    """Return `words` without the options that are keys of `options`, and store their values there. The first -- ends
    the options and is dropped."""
    rest: list[str] = []
    waiting = iter(words)
    for word in waiting:
        name, equals, value = word.partition("=")
        if word == "--":
            break
        if name not in options:
            rest.append(word)
        elif equals:
            options[name] = value
        elif (following := next(waiting, None)) is not None:
            options[name] = following
        else:
            raise UsageError(f"{name} needs a value; write it after -- if it is meant for the program.")
    return [*rest, *waiting]


def profile(
    submission: SubmissionArgument,
    test: Annotated[
        str | None, typer.Option("--test", metavar="t23", help="The testcase; by default the largest sample.")
    ] = None,
    assignment: AssignmentOption = None,
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    launches: Annotated[
        int, typer.Option("--launches", metavar="N", min=1, help="Profile about this many launches.")
    ] = _PROFILED_LAUNCHES,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the table here.")] = None,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the whole profile here.")] = None,
    verbose: VerboseOption = False,
) -> None:
    """Show each kernel's metrics (from Nsight Compute or the emulator), its occupancy and what limits it."""
    from grader.commands import estimating, inspection
    from grader.commands.choice import Choice
    from grader.report import profile as profile_report

    choice = Choice(assignment, test, engine, arch)
    study = inspection.profile_program(submission, choice, launches=launches, gains=estimating.gains)
    say(profile_report.render(study))
    if csv is not None:
        csv.write_text(profile_report.as_csv(study), encoding="utf-8")
    if json is not None:
        json.write_text(profile_report.as_json(study), encoding="utf-8")


def estimate(
    submission: SubmissionArgument,
    test: Annotated[
        str | None, typer.Option("--test", metavar="t23", help="The tests; by default a timed one of middling size.")
    ] = None,
    gpu: Annotated[str, typer.Option("--gpu", metavar="h100|h200|a100|l40s|…", help="The GPU.")] = "h100",
    assignment: AssignmentOption = None,
    json: JsonOption = None,
) -> None:
    """Predict the time on a GPU, without a GPU: what limits it, and what a fix would gain. Never a grade."""
    from grader.commands import estimating
    from grader.commands.choice import Choice
    from grader.report import estimate as estimate_report

    found = estimating.estimate_program(submission, Choice(assignment, test), gpu)
    say(estimate_report.render(found))
    if json is not None:
        json.write_text(estimate_report.as_json(found), encoding="utf-8")


def explain(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD.json|ID", help="A file that grade --json wrote, or a student's id.")
    ],
    other: Annotated[Path | None, typer.Argument(metavar="[OTHER.json]", help="A record to compare it with.")] = None,
    store: StoreOption = None,
) -> None:
    """Show where every number of a record comes from; with a second record, compare the two."""
    if other is None and not record.is_file() and record.suffix != ".json":
        from grader.commands import complaints

        say(complaints.explain(str(record), store, None))
    else:
        from grader.commands import submissions

        say(submissions.explain_records(record, other))


def enter(
    record: Annotated[Path, typer.Argument(metavar="RECORD.json", help="A record of one submission.")],
    given: Annotated[list[str], typer.Argument(metavar="PART=POINTS...", help="For example report=8.5.")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="The reason, which the student reads.")] = "",
) -> None:
    """Enter an assistant's points into a record. Grading again with --json to the same file keeps them."""
    from grader.commands import submissions
    from grader.report import terminal

    say(terminal.render(submissions.enter_points(record, given, note)))


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `grader`."""
    app.command()(check)
    app.command(epilog=CLASS_RULE)(grade)
    app.command(context_settings={"allow_interspersed_args": False})(run)
    app.command()(profile)
    app.command()(estimate)
    app.command()(explain)
    app.command()(enter)
