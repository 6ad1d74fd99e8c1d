"""One run of a built program on one input file: private folder, limits, trace."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from grader import sandbox
from grader.base.errors import MachineFault
from grader.course.assignment import Limits
from grader.programs.engine import Engine
from grader.programs.trace import MAX_FILE_BYTES, Trace, read_received
from grader.sandbox import memory_share
from grader.sandbox.scratch import claim_name, scratch_folder
from grader.sandbox.streams import Receiver

_SLACK_BYTES = 64 << 20
"""How much larger than expected an output may grow before the run is stopped: the checker should see that an output is
too long, and programs may write other files."""

_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW, time.CLOCK_BOOTTIME)
"""CUPTI's timestamps are CLOCK_REALTIME (seen with CUDA 13.0), the emulator's CLOCK_MONOTONIC."""

_EARLIER = 0.9
"""Of the time limit, what an engine that watches its own kernels may use: it needs the rest to say what it saw."""


@dataclass(frozen=True)
class Run:
    """The result of one run. `output` may not exist; it lives as long as the run's folder.

    `trace` is None where the engine could not trace (`untraced_reason` says why) or nothing was written. `began_ns` is
    when it began, on each clock that a tracer may use.
    """

    outcome: sandbox.Outcome
    output: Path
    trace: Trace | None
    untraced_reason: str
    began_ns: tuple[int, ...] = ()
    ended: float = 0.0
    """On `time.monotonic`."""


@contextlib.contextmanager
def run_program(
    engine: Engine, program: Path, input_file: Path, *, output_bytes: int, wall_s: float, limits: Limits
) -> Iterator[Run]:
    """Run `program INPUT OUTPUT` in an empty folder that is removed afterwards, so no output can be a stale one.

    The input has a random name in a folder without other files. `output_bytes` is the exact size of a correct output,
    `wall_s` the time limit. Raises MachineFault when the machine has no room for the run.
    """
    with scratch_folder("run", linger=True) as folder, _lent(input_file, folder) as lent, _receiver() as receiver:
        work = folder / "run" / "work"  # so that neither its parent nor that one's is /tmp
        work.mkdir(parents=True)
        output = work / "output"
        own = _copy(program, folder / "program")
        launch = engine.launch(own, (str(lent), str(output)), f"fd:{receiver.descriptor}")
        limit = {launch.limit_variable: f"{_EARLIER * wall_s:g}"} if launch.limit_variable else {}
        job = sandbox.Job(
            command=launch.command,
            folder=work,
            environment={**launch.environment, **limit},
            readable=(own, lent, *launch.readable),
            devices=launch.devices,
            descriptors=(receiver.descriptor,),
            changes_modes=False,
            starts_processes=not engine.measures_time,  # the emulator asks addr2line for lines; it times nothing
        )
        receiver.start()
        began_ns = tuple(map(time.clock_gettime_ns, _CLOCKS))
        outcome = sandbox.run(
            job,
            sandbox.Limits(
                wall_s=wall_s,
                memory_bytes=memory_share.of_a_program(limits.memory_bytes),
                processes=limits.processes,
                file_bytes=output_bytes + _SLACK_BYTES if launch.file_sizes_limited else None,
                folder_bytes=2 * (output_bytes + _SLACK_BYTES),
                kept_output_bytes=limits.stdout_bytes,
            ),
        )
        ended = time.monotonic()
        work.chmod(0o700)  # the program may have taken it away
        received = receiver.finish()
        traced = launch.traced and receiver.received > 0
        trace = read_received(received) if traced else None
        names = {own: f"./{program.name}", lent: "INPUT", output: "OUTPUT", work: "."}
        outcome = replace(
            outcome, stdout=_without_folders(outcome.stdout, names), stderr=_without_folders(outcome.stderr, names)
        )
        yield Run(outcome, output, trace, launch.untraced_reason, began_ns, ended)


def _copy(program: Path, to: Path) -> Path:
    """A copy of the program for one run: the resident pages of a shared file would reveal what earlier runs did."""
    try:
        shutil.copyfile(program, to)
    except OSError as error:
        raise MachineFault(f"{to.parent} has no room for a copy of the program: {error.strerror}.") from error
    to.chmod(0o555)
    return to


def pass_through(engine: Engine, program: Path, arguments: Sequence[str], called: str) -> int:
    """Run `program` as a person would, in their folder and on their terminal, with `called` for its argv[0]; its exit
    code (128 + signal)."""
    with scratch_folder("run") as folder:
        launch = engine.launch(program, arguments, str(folder / "trace.jsonl"))
        return sandbox.run_attached(launch.command, launch.environment, called)


def _without_folders(text: str, names: Mapping[Path, str]) -> str:
    """A program's output, with the sandbox's paths replaced by the names that people know."""
    for path in sorted(names, key=lambda path: -len(path.parts)):
        text = text.replace(str(path), names[path])
    return text


@contextlib.contextmanager
def _lent(input_file: Path, folder: Path) -> Iterator[Path]:
    """A second name for the input, for one run: its own says which testcase it is, and so does /proc/self/mountinfo if
    it is mounted. A hard link next to it; if that fails, a copy in `folder`."""
    original = input_file.resolve()
    other = original.with_name(f"{claim_name(original.parent)}{secrets.token_hex(8)}")
    try:
        os.link(original, other)
    except OSError:
        other = folder / "input"
        try:
            shutil.copyfile(original, other)
        except OSError as error:
            raise MachineFault(f"{folder} has no room for a copy of {input_file}: {error.strerror}.") from error
    try:
        yield other
    finally:
        other.unlink(missing_ok=True)


@contextlib.contextmanager
def _receiver() -> Iterator[Receiver]:
    try:
        receiver = Receiver(MAX_FILE_BYTES)
    except OSError as error:
        raise MachineFault(f"The trace file could not be created: {error.strerror}; free some space.") from error
    try:
        yield receiver
    finally:
        receiver.close()
