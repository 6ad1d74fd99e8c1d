"""One run of a built program on one input file: private folder, limits, trace."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader import sandbox
from grader.assignment import Limits
from grader.engine import Engine
from grader.errors import MachineFault
from grader.trace import Trace, read_trace

_SLACK_BYTES = 64 << 20
"""How much larger than expected an output may grow before the run is stopped: an output that is too long shall be
seen to be too long, and programs may keep other files beside it."""


@dataclass(frozen=True)
class Run:
    """What one run left behind. `output` may not exist; it and the trace live as long as the run's folder.

    `trace` is None where the engine could not trace (`untraced_reason` says why) or nothing was written.
    """

    outcome: sandbox.Outcome
    output: Path
    trace: Trace | None
    untraced_reason: str


@contextlib.contextmanager
def run_program(
    engine: Engine, program: Path, input_file: Path, *, output_bytes: int, wall_s: float, limits: Limits
) -> Iterator[Run]:
    """Run `program INPUT OUTPUT` in an empty folder that is removed afterwards, so no output can be a stale one.

    The input is seen under a name that tells nothing, beside no other file. `output_bytes` is the exact size of a
    right output, `wall_s` the time limit. Raises MachineFault when the machine has no room for the run.
    """
    with _private_folder() as folder:
        work, trace_file = folder / "work", folder / "trace.jsonl"
        work.mkdir()
        trace_file.touch()
        output = work / "output"
        launch = engine.launch(program, (str(input_file.resolve()), str(output)), trace_file)
        job = sandbox.Job(
            command=launch.command,
            folder=work,
            environment=launch.environment,
            readable=(program, input_file.resolve(), *launch.readable),
            writable=(trace_file,),
            devices=launch.devices,
        )
        outcome = sandbox.run(
            job,
            sandbox.Limits(
                wall_s=wall_s,
                memory_bytes=limits.memory_bytes,
                processes=limits.processes,
                file_bytes=output_bytes + _SLACK_BYTES if launch.file_sizes_limited else None,
                folder_bytes=2 * (output_bytes + _SLACK_BYTES),
                kept_output_bytes=limits.stdout_bytes,
            ),
        )
        traced = launch.traced and trace_file.stat().st_size > 0
        yield Run(outcome, output, read_trace(trace_file) if traced else None, launch.untraced_reason)


def pass_through(engine: Engine, program: Path, arguments: Sequence[str]) -> int:
    """Run `program` as a person would, in their folder and on their terminal; its exit code (128 + signal)."""
    with _private_folder() as folder:
        launch = engine.launch(program, arguments, folder / "trace.jsonl")
        return sandbox.run_attached(launch.command, launch.environment)


@contextlib.contextmanager
def _private_folder() -> Iterator[Path]:
    try:
        folder = tempfile.TemporaryDirectory(prefix="grader-run-", ignore_cleanup_errors=True)
    except OSError as error:
        raise MachineFault(
            f"No folder for the run could be made in {tempfile.gettempdir()}: {error.strerror}; free some space there."
        ) from error
    with folder as name:
        yield Path(name)
