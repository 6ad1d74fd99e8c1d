"""The commands of the live judge, with their options and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.base.names import say
from grader.commands.options import BestOption, StoreOption

RosterOption = Annotated[
    Path | None,
    typer.Option("--roster", metavar="CSV", help="The students of the class; docs/assistants.md has its columns."),
]
AssignmentOption = Annotated[str | None, typer.Option("--assignment", metavar="NAME", help="The assignment.")]


def serve(
    assignment: AssignmentOption = None,
    roster: RosterOption = None,
    host: Annotated[str, typer.Option("--host", help="The address to listen on; a proxy adds TLS.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 8000,
    engine: Annotated[str, typer.Option("--engine", metavar="auto|cuda|emulator", help="Where programs run.")] = "auto",
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="The number of emulators, or of cluster jobs.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="slurm", help="Grade on the cluster of assignment.yaml.")
    ] = None,
    store: StoreOption = None,
    best: BestOption = None,
) -> None:
    """Serve the live judge: students submit, watch the verdict, see the board. See docs/judge.md."""
    from grader.commands import judging

    judging.serve(assignment, judging.ServeOptions(store, roster, host, port, engine, jobs, best, cluster))


def tokens(
    roster: RosterOption = None,
    store: StoreOption = None,
    assignment: AssignmentOption = None,
    rotate: Annotated[
        list[str] | None, typer.Option("--rotate", metavar="ID", help="A new token for this student, or for 'staff'.")
    ] = None,
    revoke: Annotated[
        list[str] | None, typer.Option("--revoke", metavar="ID", help="Revoke this student's token.")
    ] = None,
) -> None:
    """Print new tokens for the judge as CSV, for all who have none. A token is shown only once."""
    from grader.commands import judging

    say(judging.tokens(roster, store, assignment, rotate=rotate or (), revoke=revoke or ()), end="")


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your program, a zip or a folder.", show_default=False)],
    server: Annotated[str, typer.Option("--server", metavar="URL", help="The judge's address.", show_default=False)],
    token: Annotated[
        str | None, typer.Option("--token", metavar="T", help="Your token; by default GRADER_TOKEN.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the result; exit 1 when a test fails.")] = False,
) -> None:
    """Submit to a judge."""
    from grader.commands import judge_client

    if not judge_client.submit(file, server, token, wait=wait):
        raise typer.Exit(1)


def judge(
    action: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="queue, show STUDENT, gradebook, metrics; pause, resume, drain, accept, regrade; rerun, priority or "
            "withdraw SUBMISSION; ban or unban STUDENT.",
            show_default=False,
        ),
    ],
    target: Annotated[str, typer.Argument(metavar="[TARGET]", help="The submission or student to act on.")] = "",
    server: Annotated[
        str, typer.Option("--server", metavar="URL", help="The judge's address.")
    ] = "http://127.0.0.1:8000",
    token: Annotated[
        str | None, typer.Option("--token", metavar="T", help="The staff's token; by default GRADER_TOKEN.")
    ] = None,
    value: Annotated[int, typer.Option("--value", metavar="N", help="The priority; above 0 goes first.")] = 1,
) -> None:
    """Do what the judge's staff page does."""
    from grader.commands import judge_client

    say(judge_client.staff(action, target, server, token, value), end="")


def add_to(app: typer.Typer) -> None:
    """Make these commands part of `grader`."""
    app.command()(serve)
    app.command()(submit)
    app.command()(judge)
    app.command()(tokens)
