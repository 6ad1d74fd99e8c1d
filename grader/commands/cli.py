"""The command `grader`: collects the subcommands, and turns every failure into one sentence and an exit code."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from types import FrameType
from typing import Annotated, Any

import typer

from grader.base.errors import GraderFault, MachineFault, UsageError
from grader.base.names import say
from grader.base.unwinding import end_at_last, never_drop_a_signal
from grader.commands import class_cli, course_cli, judge_cli, submission_cli

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


@app.callback()
def every_command(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show tracebacks of grader faults.")] = False,
) -> None:
    pass  # `main` looks for --verbose itself


for family in (submission_cli, course_cli, class_cli, judge_cli):
    family.add_to(app)


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
        sys.exit(128 + number)  # unwinds the stack, so that child processes end and no file is left half written

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
    if interrupts and code == _STOPPED:  # some versions of typer convert the interrupt into an exit code themselves
        say("\ngrader: stopped; no partial file is left. Run the same command to continue.", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _make_output_writable() -> None:
    """Open the descriptors 0 to 2 if they are closed. Otherwise a file opened later could get one of these numbers, and
    a process that we start would not inherit it: there, the numbers are its own streams. Characters that the
    terminal's encoding lacks are written as question marks."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _grader_words(words: list[str]) -> list[str]:
    """The arguments for the grader itself, without those after the command `run`, which are for the program."""
    command = next((place for place, word in enumerate(words) if not word.startswith("-")), len(words))
    return words[:command] if words[command : command + 1] == ["run"] else words


def _complain(what: str, error: Exception, verbose: bool, code: int) -> int:
    if verbose:
        traceback.print_exc()
    say(f"grader: {what}: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
