"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grader.base.errors import UsageError

SubmissionArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="A .cu file, a .py file (Triton), or a folder.", show_default=False),
]
AssignmentOption = Annotated[
    str | None,
    typer.Option(
        "--assignment", metavar="NAME", help="The assignment; by default it is recognised by the files' names."
    ),
]
EngineOption = Annotated[
    str,
    typer.Option(
        "--engine", metavar="auto|cuda|emulator", help="Where programs run; auto takes a GPU if there is one."
    ),
]
ArchOption = Annotated[
    str | None,
    typer.Option(
        "--arch", metavar="sm_80|sm_89|sm_90a", help="The GPU that the emulator stands for; implies --engine emulator."
    ),
]
TestsOption = Annotated[
    str | None,
    typer.Option("--tests", metavar="TESTS", help="all, public or t01,t05..t10; by default all on a GPU, else public."),
]
JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result record here.")]
SarifOption = Annotated[
    Path | None, typer.Option("--sarif", metavar="FILE", help="Write the findings here, as SARIF, for editors.")
]
LangOption = Annotated[
    str | None,
    typer.Option("--lang", metavar="en|zh-TW", help="The language of findings; or set GRADER_LANG."),
]
RequireSandboxOption = Annotated[
    bool, typer.Option("--require-sandbox", help="Refuse to run programs that cannot be fully confined.")
]
ShowOption = Annotated[
    int, typer.Option("--show", metavar="N", min=0, help="Print the first N rows and columns of every output tensor.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Say more; show tracebacks of grader faults.")]
StoreOption = Annotated[
    Path | None,
    typer.Option("--store", metavar="FILE", help="The class's store; by default results/NAME.sqlite."),
]
BestOption = Annotated[
    bool | None,
    typer.Option("--best/--latest", help="Which attempt of a student counts; by default as the assignment says."),
]


def speak(language: str | None) -> None:
    """Let findings be said in this language, if one is given. Raises UsageError."""
    if language is None:
        return
    from grader.findings import LANGUAGES, select_language

    if language not in LANGUAGES:
        raise UsageError(f"--lang: there is no language {language!r}; choose from {', '.join(LANGUAGES)}.")
    select_language(language)
