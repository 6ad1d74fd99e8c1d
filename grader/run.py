"""One run of a built program on one input file: private folder, limits, trace."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from grader import sandbox
from grader.engine import Engine
from grader.errors import MachineFault
from grader.trace import Trace, read_trace

_SLACK_BYTES = 1 << 20
"""How much larger than expected an output may grow before the run is stopped: enough to show that it is too long."""


@dataclass(frozen=True)
class Run:
    """What one run left behind. `output` may not exist; it and the trace live as long as the run's folder."""

    outcome: sandbox.Outcome
    output: Path
    trace: Trace | None
    untraced_reason: str


@contextlib.contextmanager
def run_program(
    engine: Engine, program: Path, input_file: Path, *, output_bytes: int, wall_s: float, kept_output_bytes: int
) -> Iterator[Run]:
    """Run `program INPUT OUTPUT` in an empty folder that is removed afterwards, so no output can be a stale one.

    `output_bytes` is the exact size that a right output has, `wall_s` the limit. Raises MachineFault when the
    machine has no room for the run.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="grader-run-", ignore_cleanup_errors=True)
    except OSError as error:
        raise MachineFault(
            f"No folder for the run could be made in {tempfile.gettempdir()}: {error.strerror}; free some space there."
        ) from error
    with folder as name:
        work = Path(name) / "work"
        work.mkdir()
        output, trace_file = work / "output", Path(name) / "trace.jsonl"
        launch = engine.launch(program, (str(input_file.resolve()), str(output)), trace_file)
        limits = sandbox.Limits(
            wall_s=wall_s, file_bytes=max(output_bytes + _SLACK_BYTES, 64 << 20), kept_output_bytes=kept_output_bytes
        )
        outcome = sandbox.run(sandbox.Job(launch.command, work, launch.environment), limits)
        yield Run(
            outcome=outcome,
            output=output,
            trace=read_trace(trace_file) if launch.traced and trace_file.exists() else None,
            untraced_reason=launch.untraced_reason,
        )


def pass_through(engine: Engine, program: Path, arguments: Sequence[str]) -> int:
    """Run `program` as a person would, in their folder and on their terminal; its exit code (128 + signal)."""
    with tempfile.TemporaryDirectory(prefix="grader-run-") as name:
        launch = engine.launch(program, arguments, Path(name) / "trace.jsonl")
        return sandbox.run_attached(launch.command, launch.environment)
