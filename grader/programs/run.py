"""Runs a built program once on one input file, in a private folder, under limits, with a trace."""

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
from grader.findings import Finding
from grader.programs.engine import Engine, plan_program
from grader.programs.host_lines import with_lines
from grader.programs.python_main import SUFFIX
from grader.programs.trace import MAX_FILE_BYTES, Trace, read_received, read_trace
from grader.sandbox import memory_share
from grader.sandbox.scratch import claim_name, scratch_folder
from grader.sandbox.streams import Receiver

_SLACK_BYTES = 64 << 20
"""The number of bytes by which an output may exceed its expected size before the run is stopped: the checker has to
detect an output that is too long, and programs may write other files."""

_CLOCKS = (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC, time.CLOCK_MONOTONIC_RAW, time.CLOCK_BOOTTIME)
"""The clocks that a tracer may use: CUPTI uses CLOCK_REALTIME (seen with CUDA 13.0), the emulator CLOCK_MONOTONIC."""

_EARLIER = 0.9
"""An engine that stops kernels on its own does so after this fraction of the time limit. It needs the rest to report
where the kernels were."""


@dataclass(frozen=True)
class Run:
    """The result of one run. `output` may not exist; it is removed with the run's folder.

    `trace` is None if the engine could not trace (`untraced_reason` says why) or the program wrote nothing. `during_ns`
    is when the run began and ended, on each clock that a tracer may use. This span is longer than the wall time: on a
    busy machine, seconds can pass before the program starts.
    """

    outcome: sandbox.Outcome
    output: Path
    trace: Trace | None
    untraced_reason: str
    during_ns: tuple[tuple[int, int], ...] = ()
    ended: float = 0.0
    """The time when the run ended, on `time.monotonic`."""

    replayed: bool = False
    """Whether a plan was replayed: the host code is the grader's own."""


@dataclass(frozen=True)
class ValueRecording:
    """An open descriptor for the record of where wrong values come from (emulator/runtime/values.c). `wanted`: (place
    in the output file in words, bits) of these values; `words`: the size of the output file."""

    descriptor: int
    words: int
    wanted: Sequence[tuple[int, int]]

    @property
    def environment(self) -> dict[str, str]:
        named = "".join(f",{place}:{bits:x}" for place, bits in self.wanted)
        return {
            "GRADER_EMULATOR_WATCH": str(self.descriptor),
            "GRADER_EMULATOR_WATCHED": f"{self.words}{named}",
        }


@contextlib.contextmanager
def run_program(
    engine: Engine,
    program: Path,
    input_file: Path,
    *,
    output_bytes: int,
    wall_s: float,
    limits: Limits,
    cpu_s: float | None = None,
    recording: ValueRecording | None = None,
) -> Iterator[Run]:
    """Run `program INPUT OUTPUT` in an empty folder that is removed afterwards, so no output can be stale.

    The input has a random name, and the program sees no other file next to it. `output_bytes` is the exact size of a
    correct output, `wall_s` the time limit, `cpu_s` that of processor time. `recording` is for a build with `record`.
    Raises MachineFault if the machine has no room for the run.
    """
    with scratch_folder("run", linger=True) as folder, _lent(input_file, folder) as lent, _receiver() as receiver:
        work = folder / "run" / "work"  # /tmp is writable in the sandbox, but the job's .. and ../.. must not be
        work.mkdir(parents=True)
        output = work / "output"
        own = _copy(program, folder / program.name)
        launch = engine.launch(own, (str(lent), str(output)), f"fd:{receiver.descriptor}")
        early = f"{_EARLIER * wall_s:g}" if cpu_s is None else f"{_EARLIER * cpu_s:g}cpu"
        limit = {launch.limit_variable: early} if launch.limit_variable else {}
        job = sandbox.Job(
            command=launch.command,
            folder=work,
            environment={**launch.environment, **limit, **(recording.environment if recording else {})},
            readable=(own, lent, *launch.readable),
            devices=launch.devices,
            descriptors=(receiver.descriptor, *((recording.descriptor,) if recording else ())),
            starts_processes=False,
        )
        receiver.start()
        began_ns = tuple(map(time.clock_gettime_ns, _CLOCKS))
        outcome = sandbox.run(
            job,
            sandbox.Limits(
                wall_s=wall_s,
                cpu_s=cpu_s,
                memory_bytes=memory_share.of_a_program(limits.memory_bytes),
                processes=limits.processes,
                file_bytes=output_bytes + _SLACK_BYTES if launch.file_sizes_limited else None,
                folder_bytes=2 * (output_bytes + _SLACK_BYTES),
                kept_output_bytes=limits.stdout_bytes,
            ),
        )
        ended = time.monotonic()
        during_ns = tuple(zip(began_ns, map(time.clock_gettime_ns, _CLOCKS), strict=True))
        work.chmod(0o700)  # the program may have removed this permission
        received = receiver.finish()
        traced = launch.traced and receiver.received > 0
        trace = read_received(received) if traced else None
        if trace and trace.findings:
            trace = replace(trace, findings=with_lines(trace.findings, program))
        names = {own: f"./{program.name}", lent: "INPUT", output: "OUTPUT", work: "."}
        outcome = replace(
            outcome, stdout=_without_folders(outcome.stdout, names), stderr=_without_folders(outcome.stderr, names)
        )
        replayed = plan_program.is_package(program)
        yield Run(outcome, output, trace, launch.untraced_reason, during_ns, ended, replayed)


def _copy(program: Path, to: Path) -> Path:
    """Copy the program for one run. The resident pages of a shared file would reveal what earlier runs did."""
    try:
        shutil.copyfile(program, to)
    except OSError as error:
        raise MachineFault(
            f"{to.parent} has no room for a copy of the program: {error.strerror}; free some space there."
        ) from error
    to.chmod(0o555)
    return to


def pass_through(
    engine: Engine, program: Path, arguments: Sequence[str], called: str
) -> tuple[int, tuple[Finding, ...]]:
    """Run `program`, or a Python file, unconfined, in the user's folder and on their terminal, with `called` as a
    program's argv[0]. Return its exit code, or 128 + the signal, and what its engine found."""
    with scratch_folder("run") as folder:
        trace = folder / "trace.jsonl"
        launch = engine.launch(program, arguments, str(trace))
        command = launch.command
        if program.suffix == SUFFIX:  # Python finds its files by its argv[0]
            command = plan_program.local_command(engine, program, arguments)
            called = command[0]
        code = sandbox.run_attached(command, launch.environment, called)
        return code, with_lines(read_trace(trace).findings, program)


def _without_folders(text: str, names: Mapping[Path, str]) -> str:
    """A program's output, with the sandbox's paths replaced by names that people know."""
    for path in sorted(names, key=lambda path: -len(path.parts)):
        text = text.replace(str(path), names[path])
    return text


@contextlib.contextmanager
def _lent(input_file: Path, folder: Path) -> Iterator[Path]:
    """Give the input a second name for one run. Its real name would reveal the testcase, and so would
    /proc/self/mountinfo if the file were mounted. The second name is a hard link next to the file, or, if that fails, a
    copy in `folder`."""
    original = input_file.resolve()
    other = original.with_name(f"{claim_name(original.parent)}{secrets.token_hex(8)}")
    try:
        os.link(original, other)
    except OSError:
        other = folder / "input"
        try:
            shutil.copyfile(original, other)
        except OSError as error:
            raise MachineFault(
                f"{folder} has no room for a copy of {input_file}: {error.strerror}; free some space there."
            ) from error
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
