"""The command `grader`: its subcommands and their options, and nothing else."""

from __future__ import annotations

import errno
import io
import os
import shlex
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.unwinding import end_at_last, never_drop_a_signal
from grader.base.verdict import Verdict
from grader.commands import class_cli, judge_cli
from grader.commands.class_cli import CLASS_RULE, BestOption, StoreOption

if TYPE_CHECKING:
    from grader.records.record import Record

_PROFILED_LAUNCHES = 48
"""How many launches of a program are profiled by default, no matter how many it makes."""

_STOPPED = 128 + signal.SIGINT
"""The exit code after Ctrl-C, as in shells."""
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EROFS))

# Typer before 0.16 builds on click, later versions on their own copy of it; the exception has the same name in both.
_WrongWords: Any = next(base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException")

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Builds, runs, checks, times and scores CUDA homework, on a GPU or on an emulator.",
)
testcases = typer.Typer(no_args_is_help=True, help="List, generate and verify the testcases of an assignment.")
app.add_typer(testcases, name="testcases")

AssignmentOption = Annotated[
    str | None,
    typer.Option("--assignment", metavar="NAME", help="The assignment; by default the one that the files match."),
]


@app.callback()
def every_command(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show tracebacks of grader faults.")] = False,
) -> None:
    pass  # `main` looks for --verbose itself


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
    typer.Option(
        "--tests", metavar="all|public|t01,t05..t10", help="Testcases; by default all on a GPU, public ones elsewhere."
    ),
]
JsonOption = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the result record here.")]
RequireSandboxOption = Annotated[
    bool, typer.Option("--require-sandbox", help="Refuse to run anything where it cannot be fully confined.")
]
ShowOption = Annotated[
    int, typer.Option("--show", metavar="N", min=0, help="Print the first N rows and columns of every output tensor.")
]
VerboseOption = Annotated[bool, typer.Option("--verbose", "-v", help="Say more; show tracebacks of grader faults.")]


@app.command()
def check(
    submission: Annotated[Path, typer.Argument(metavar="FILE.cu", help="A .cu file or a folder.", show_default=False)],
    assignment: AssignmentOption = None,
    tests: TestsOption = "public",
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    json: JsonOption = None,
    sanitize: Annotated[
        str | None,
        typer.Option("--sanitize", metavar="all|memory,race,init,sync", help="Look for these faults, on one sample."),
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
    from grader.report import terminal

    if gradcheck:
        from grader.commands import gradients

        right, text = gradients.check_gradients(
            submission, tests or "public", assignment=assignment, engine=engine, arch=arch
        )
        print(text)
        raise typer.Exit(not right)
    checks = sanitizers.parse_checks(sanitize) if sanitize else ()
    records = submissions.grade_paths(
        [submission],
        assignment=assignment,
        tests=tests,
        engine=engine,
        arch=arch,
        json=json,
        require_sandbox=require_sandbox,
        show=show,
        quick=True,
    )
    print(terminal.render_check(records[0], verbose=verbose))
    found = 0
    if checks and records[0].build.ok:
        from grader.commands import inspection

        sample = inspection.sample_to_sanitize(records[0])
        reports = inspection.sanitize_program(
            submission, checks, test=sample, assignment=assignment, engine=engine, arch=arch
        )
        print(f"\nOn {sample}:\n{sanitizers.render(reports)}")
        found = sum(report.errors for report in reports)
    elif terminal.lacks_a_cause(records[0]):
        print(f"What is wrong, line by line: grader check {shlex.quote(str(submission))} --sanitize all")
    if found or any(test.verdict is not Verdict.PASSED for test in records[0].tests):
        raise typer.Exit(1)


@app.command(epilog=CLASS_RULE)
def grade(
    paths: Annotated[
        list[Path], typer.Argument(metavar="PATH...", help="Submissions (.cu files or folders), or a class's folder.")
    ],
    assignment: AssignmentOption = None,
    tests: TestsOption = None,
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    json: JsonOption = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page to read here.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write JUnit XML here.")] = None,
    store: StoreOption = None,
    roster: Annotated[
        Path | None, typer.Option("--roster", metavar="CSV", help="Class: ids, names, nicknames, extensions.")
    ] = None,
    rerun: Annotated[
        str | None,
        typer.Option("--rerun", metavar="failed|machine-faults|all|ID,...", help="Class: which to grade again."),
    ] = None,
    best: BestOption = False,
    as_class: Annotated[bool, typer.Option("--class", help="Treat the folder as a class.")] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", metavar="N", min=1, help="Class on the emulator: how many at a time.")
    ] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", metavar="slurm", help="Class: grade on the cluster of assignment.yaml.")
    ] = None,
    timings: Annotated[bool, typer.Option("--timings", help="Show the time of each stage.")] = False,
    show: ShowOption = 0,
    require_sandbox: RequireSandboxOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Grade submissions: verdicts, times, score. Exit 0 when all of them could be graded, whatever their scores.

    The results of a class go into a store. After a stop, the same command continues where it was.
    """
    from grader import sandbox
    from grader.commands import submissions
    from grader.report import explain as explanation
    from grader.report import terminal

    if require_sandbox:
        sandbox.require()
    may_be_class = as_class or any(option is not None for option in (roster, rerun, cluster))
    may_be_class |= any(path.is_dir() for path in paths)
    if may_be_class:
        from grader.commands import classroom

        options = classroom.ClassOptions(store, roster, rerun, best, as_class, jobs, cluster)
        if classroom.wanted(paths, assignment, options):
            if html is not None:
                raise UsageError("--html is for single submissions; `grader site OUT` makes the pages of a class.")
            summary, judged = classroom.grade(
                paths,
                assignment=assignment,
                tests=tests,
                engine=engine,
                arch=arch,
                options=options,
                json=json,
                junit=junit,
            )
            print(summary)
            raise typer.Exit(not judged)
    records = submissions.grade_paths(
        paths,
        assignment=assignment,
        tests=tests,
        engine=engine,
        arch=arch,
        json=json,
        require_sandbox=require_sandbox,
        show=show,
    )
    _keep(records, store=store, html=html, junit=junit)
    print(f"\n{'=' * terminal.WIDTH}\n".join(terminal.render(record, verbose=verbose) for record in records))
    if timings:
        print("\n" + "\n\n".join(explanation.render_timings(record) for record in records))
    if any(record.infrastructure_failed for record in records):
        raise typer.Exit(1)


def _keep(records: Sequence[Record], *, store: Path | None, html: Path | None, junit: Path | None) -> None:
    """Write the records of single submissions to all requested files."""
    if store is not None:
        from grader.commands import classroom

        classroom.keep(records, store)
    if html is not None:
        from grader.commands import report_files

        report_files.write_html(records, html)
    if junit is not None:
        from grader.commands import report_files

        report_files.write_junit(records, junit)


@app.command(context_settings={"allow_interspersed_args": False})
def run(
    program: Annotated[Path, typer.Argument(metavar="FILE.cu", help="A CUDA program: a .cu file or a folder.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="Passed to the program, options too.")
    ] = None,
    engine: EngineOption = "auto",
    arch: ArchOption = None,
    assignment: AssignmentOption = None,
) -> None:
    """Build and run any CUDA program; its output and exit code are the program's own.

    Everything after the program's name is passed to it, except --engine, --arch and --assignment; after --, these too.
    """
    from grader.commands import submissions

    given = {"--engine": engine, "--arch": arch, "--assignment": assignment}
    rest = _without_options(arguments or [], given)
    raise typer.Exit(
        submissions.run_program(
            program, rest, engine=given["--engine"] or "auto", arch=given["--arch"], assignment=given["--assignment"]
        )
    )


def _without_options(words: Sequence[str], options: dict[str, str | None]) -> list[str]:
    """Return `words` without the options named in `options`, whose values are stored there. The first -- ends the
    options and is dropped."""
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


@app.command()
def profile(
    submission: Annotated[Path, typer.Argument(metavar="FILE.cu", help="A .cu file or a folder.", show_default=False)],
    test: Annotated[str, typer.Option("--test", metavar="t23", help="The testcase to profile it on.")],
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
    """Show the metrics of each kernel from Nsight Compute, its occupancy and what limits it."""
    from grader.commands import inspection
    from grader.report import profile as profile_report

    study = inspection.profile_program(
        submission, test, assignment=assignment, engine=engine, arch=arch, launches=launches
    )
    print(profile_report.render(study))
    if csv is not None:
        csv.write_text(profile_report.as_csv(study), encoding="utf-8")
    if json is not None:
        json.write_text(profile_report.as_json(study), encoding="utf-8")


@app.command()
def explain(
    record: Annotated[
        Path, typer.Argument(metavar="RECORD.json|ID", help="A file that grade --json wrote, or a student's id.")
    ],
    other: Annotated[Path | None, typer.Argument(metavar="[OTHER.json]", help="Compare with this one.")] = None,
    store: StoreOption = None,
) -> None:
    """Show where every number of a record comes from; with a second record, how the two compare, or why they cannot."""
    if other is None and not record.is_file() and record.suffix != ".json":
        from grader.commands import classroom

        print(classroom.explain(str(record), store, None))
    else:
        from grader.commands import submissions

        print(submissions.explain_records(record, other))


@app.command()
def enter(
    record: Annotated[Path, typer.Argument(metavar="RECORD.json", help="A record of one submission.")],
    given: Annotated[list[str], typer.Argument(metavar="PART=POINTS...", help="report=8.5")],
    note: Annotated[str, typer.Option("--note", metavar="TEXT", help="The reason, which the student reads.")] = "",
) -> None:
    """Enter an assistant's points into a record; grading again into the same file keeps them."""
    from grader.commands import submissions
    from grader.report import terminal

    print(terminal.render(submissions.enter_points(record, given, note)))


@app.command()
def baseline(
    tests: TestsOption = "all",
    assignment: AssignmentOption = None,
    refresh: Annotated[bool, typer.Option("--refresh", help="Time everything again, even what is cached.")] = False,
) -> None:
    """Time the sequential program on this machine, or show its cached times."""
    from grader.commands import course_files

    print(course_files.show_baseline(tests or "all", assignment=assignment, refresh=refresh))


@app.command()
def assignments() -> None:
    """List the assignments that can be graded."""
    from grader.commands import course_files

    print(course_files.list_assignments())


@app.command()
def doctor() -> None:
    """Show what this machine has, what is missing and how to get it."""
    from grader.commands import submissions

    report, usable = submissions.examine_machine()
    print(report)
    if not usable:
        raise typer.Exit(1)


@testcases.command("list")
def testcases_list(assignment: AssignmentOption = None) -> None:
    """List shapes, sizes, limits, FLOPs and what is on disk."""
    from grader.commands import course_files

    print(course_files.list_testcases(assignment))


@testcases.command("generate")
def testcases_generate(
    tests: Annotated[
        list[str], typer.Argument(metavar="TESTS...", help="Names or groups: t23, t01..t10, public, all.")
    ],
    assignment: AssignmentOption = None,
    force: Annotated[bool, typer.Option("--force", help="Write files again that exist already.")] = False,
    oracle: Annotated[
        str, typer.Option("--oracle", metavar="auto|gpu|numpy", help="What computes the expected outputs.")
    ] = "auto",
) -> None:
    """Write input files and expected outputs; files that are there and correct are kept."""
    from grader.commands import course_files

    print(course_files.generate_testcases(",".join(tests), assignment=assignment, force=force, oracle=oracle))


@testcases.command("verify")
def testcases_verify(
    tests: Annotated[list[str] | None, typer.Argument(metavar="[TESTS]...", help="By default all on disk.")] = None,
    assignment: AssignmentOption = None,
    full: Annotated[bool, typer.Option("--full", help="Recompute all expected values, not just a sample.")] = False,
) -> None:
    """Check the input files and expected outputs on disk; exit 1 when one is not what it should be."""
    from grader.commands import course_files

    report, sound = course_files.verify_testcases(",".join(tests) if tests else None, assignment=assignment, full=full)
    print(report)
    if not sound:
        raise typer.Exit(1)


class_cli.add_to(app)
judge_cli.add_to(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Every failure ends in one sentence on stderr and the exit code of its kind."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _make_output_writable()
    interrupts: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        interrupts.append(number)
        end_at_last(_STOPPED)
        raise KeyboardInterrupt

    def terminate(number: int, frame: FrameType | None) -> None:
        end_at_last(128 + number)
        sys.exit(128 + number)  # unwinds: children end, files stay whole

    never_drop_a_signal()
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)
    verbose = "--verbose" in _grader_words(words) or "-v" in _grader_words(words)
    try:
        code = app(args=words, standalone_mode=False)
    except _WrongWords as error:
        error.show()
        code = 2
    except UsageError as error:
        code = _complain("error", error, verbose, 2)
    except MachineFault as error:
        code = _complain("this machine cannot do that", error, verbose, 1)
    except GraderFault as error:
        code = _complain("the grader failed, not you", error, verbose, 1)
    except (KeyboardInterrupt, typer.Abort):
        code = _STOPPED
    except BrokenPipeError:  # the reader of our output has left: grader … | head
        sys.stderr.close()
        code = 1
    except Exception as error:
        from grader import operators

        if isinstance(error, OSError) and error.errno in _FULL:
            where = error.filename or "the file that the output goes to"
            message = f"{where}: {error.strerror}; free some space there, or write elsewhere."
            code = _complain("this machine cannot do that", MachineFault(message), verbose, 1)
        elif place := operators.line_at_fault(error):
            message = f"{place}: {type(error).__name__}: {error}; correct the operator there."
            code = _complain("error", UsageError(message), verbose, 2)
        else:
            message = (
                f"{type(error).__name__}: {error}; this is a bug: please report it with the output of `grader -v …`."
            )
            code = _complain("the grader failed, not you", GraderFault(message), verbose, 1)
    if interrupts and code == _STOPPED:  # some versions of typer turn the interrupt into an exit code themselves
        print("\ngrader: stopped; no partial file is left. Run the same command to continue.", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _make_output_writable() -> None:
    """Open descriptors 0 to 2 where they are closed, since a file that took their place would not reach the processes
    that we start; and let characters that a terminal's encoding lacks be written as question marks."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _grader_words(words: list[str]) -> list[str]:
    """The words meant for the grader: those after the command `run` are for the student's program."""
    command = next((place for place, word in enumerate(words) if not word.startswith("-")), len(words))
    return words[:command] if words[command : command + 1] == ["run"] else words


def _complain(what: str, error: Exception, verbose: bool, code: int) -> int:
    if verbose:
        traceback.print_exc()
    print(f"grader: {what}: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
