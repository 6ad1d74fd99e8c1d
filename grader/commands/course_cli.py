"""The commands for a course and its machine: `grader testcases`, `baseline`, `doctor`, …, with their options."""

from __future__ import annotations

from typing import Annotated

import typer

from grader.base.names import say
from grader.commands.options import AssignmentOption, EngineOption, TestsOption

assignments = typer.Typer(help="List the assignments that can be graded, or verify one.")
testcases = typer.Typer(no_args_is_help=True, help="List, generate and verify the testcases of an assignment.")


def baseline(
    tests: TestsOption = "all",
    assignment: AssignmentOption = None,
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Measure again, say what changes, keep the faster time.")
    ] = False,
) -> None:
    """Show the sequential times on this machine, which are measured once and kept."""
    from grader.commands import course_files

    say(course_files.show_baseline(tests or "all", assignment=assignment, refresh=refresh))


@assignments.callback(invoke_without_command=True)
def assignments_list(context: typer.Context) -> None:
    """List the assignments that can be graded."""
    from grader.commands import course_files

    if context.invoked_subcommand is None:
        say(course_files.list_assignments())


@assignments.command("verify")
def assignments_verify(name: Annotated[str, typer.Argument(metavar="NAME")], engine: EngineOption = "auto") -> None:
    """Build and run everything of an assignment; exit 1 if it is easy to fool. Takes minutes without a GPU."""
    from grader.commands import verify_assignment

    report, sound = verify_assignment.verify_assignment(name, engine)
    say(report)
    raise typer.Exit(not sound)


def new(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Write a skeleton of a new assignment that grades at once."""
    from grader.commands import new_assignment

    say(new_assignment.new_assignment(name))


def doctor() -> None:
    """Show what this machine has, what is missing and how to get it."""
    from grader.commands import doctor as machine

    findings = machine.examine()
    say(machine.render(findings))
    raise typer.Exit(not all(finding.ok for finding in findings if finding.needed))


@testcases.command("list")
def testcases_list(assignment: AssignmentOption = None) -> None:
    """List shapes, sizes, limits, FLOPs and the files on disk."""
    from grader.commands import course_files

    say(course_files.list_testcases(assignment))


@testcases.command("generate")
def testcases_generate(
    tests: Annotated[
        list[str], typer.Argument(metavar="TESTS...", help="Names or groups: t23, t01..t10, public, all.")
    ],
    assignment: AssignmentOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    oracle: Annotated[
        str, typer.Option("--oracle", metavar="auto|gpu|numpy", help="What computes the expected outputs.")
    ] = "auto",
) -> None:
    """Write input files and expected outputs; keep existing files that are correct."""
    from grader.commands import course_files

    say(course_files.generate_testcases(",".join(tests), assignment=assignment, force=force, oracle=oracle))


@testcases.command("verify")
def testcases_verify(
    tests: Annotated[list[str] | None, typer.Argument(metavar="[TESTS]...", help="By default all on disk.")] = None,
    assignment: AssignmentOption = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute all expected values, not just a sample.")] = False,
) -> None:
    """Check the input files and expected outputs on disk; exit 1 if one is wrong."""
    from grader.commands import course_files

    report, sound = course_files.verify_testcases(",".join(tests) if tests else None, assignment=assignment, full=full)
    say(report)
    raise typer.Exit(not sound)


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `grader`."""
    app.command()(baseline)
    app.add_typer(assignments, name="assignments")
    app.command()(new)
    app.command()(doctor)
    app.add_typer(testcases, name="testcases")
