"""Decides whether a run's times are credible by comparing its trace, processor time and output.

The trace comes from within the program's process, so it is evidence. It cannot be changed once written (see
`sandbox.streams.Receiver`), but a program can write lines of its own, and can keep the tracer from being loaded. A
forged trace must agree with what the grader saw from outside: wall time, processor time, one process. A run that does
not agree keeps its verdict, which depends on the output file alone, but is not timed and is flagged for review.

Processor time bounds what a program can have computed on the host. It exposes host work behind decoy kernels: an honest
program spends host time on start-up, files, copies, launches and waiting, which `computed_on_the_host` adds up
generously. Anything above could be the computation itself, if it reaches the share of the sequential program's
time that a vectorised one on the same core would need (`VECTORISED`).

What a program does on the GPU without the tracer's knowledge shows on the clock outside (`grader.gpu.outside_clock`):
`hidden_work` allows what honest programs need beyond their traced kernels. Measured on an H200 (driver 580,
2026-11-22, docs/benchmarks.md): 0.2 to 2.9 ms a run for its context, up to 6 % of long series of kernels, and the
counters' tick. Where the graded run has just ended, what the counters hold of it late is seen too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.course.testcase import Case
from grader.gpu.outside_clock import TICK_S, Busy
from grader.programs.run import Run
from grader.programs.trace import MAX_EVENTS, Trace
from grader.records.disclosure import line
from grader.records.record import ProfileRecord, TestRecord, TimedRunRecord

STARTUP_CPU_S = 1.5
"""Seen: 0.2 to 0.55 s for whole runs of flash2.cu, tracer included (docs/benchmarks.md); slower machines need more."""
STARTUPS = 3
"""For times that earn points: this multiple of a minimal CUDA program's time on this machine, if that is less."""
CPU_S_PER_BYTE = 4e-9
"""Reading a file, converting, copying to the device and back: some 1 GB/s each on one core."""
COPYING_S_PER_BYTE = 16e-9
"""The longest wait that is allowed for copies of input and output: sixteen copies of all at 1 GB/s. A program can
copy for as long as it likes. Chosen, not measured."""
CPU_S_PER_LAUNCH = 2e-5
"""A launch is some 2 to 5 µs of host time, a traced one up to twice that."""
VECTORISED = 64
"""The sequential program computes some 3.6 GFLOP/s; a core with the widest vectors at best some 200."""

BUSY_MS_PER_RUN = 2.5
"""Busy time of a run without a kernel: starting and ending its context. 1.4 ms on average, 2.9 at most."""
BUSY_MS_PER_LAUNCH = 0.002
"""The GPU is busy between two kernels that follow one another."""
BUSY_SHARE = 0.12
SLOWER_FIRST = 2.0
"""GPU times repeat within 0.3 %; the first run of all may find lower clocks."""
SLOWER_FIRST_MS = 2.0
MORE_OCCUPANCY = 1.15
"""Nsight Compute's achieved occupancy over the one seen outside: never above 1 in 18 honest programs on an H200."""
MORE_OCCUPANCY_BY = 0.02

_CLOCK_SLACK_NS = 50_000_000
_CLOCK_STEP_NS = 1_000_000_000
"""How far the machine's clock may be adjusted while a program runs."""
_MAX_THREADS_PER_BLOCK = 1024


@dataclass(frozen=True)
class Witness:
    """The grader's own observations of a run: seconds of wall and of processor time, bytes of input and output, the
    engine's name, and when it began on each clock that a tracer may use."""

    engine: str
    wall_s: float
    cpu_s: float
    file_bytes: int
    began_ns: tuple[int, ...] = ()


def witness_of(engine: str, case: Case, run: Run) -> Witness:
    """The grader's observations of a run of `case` on the named engine."""
    outcome = run.outcome
    return Witness(engine, outcome.wall_s, outcome.cpu_s, case.input_bytes + case.output_bytes, run.began_ns)


@dataclass(frozen=True)
class Outside:
    """The outside clock's readings for a series of runs, and the busy time that their traces explain."""

    busy: Busy
    explained_s: float
    runs: int
    launches: int

    @property
    def allowed_s(self) -> float:
        """The most that these runs, if honest, keep the GPU busy."""
        tick = min(1.0, TICK_S / self.busy.interval_s) if self.busy.interval_s > 0 else 1.0
        fixed_ms = BUSY_MS_PER_RUN * self.runs + BUSY_MS_PER_LAUNCH * self.launches
        return (self.explained_s + fixed_ms / 1e3) * (1 + BUSY_SHARE + tick)


def hidden_work(outside: Outside) -> str:
    """Why the times of a series of runs are rejected, as a phrase; '' when they are accepted."""
    if outside.busy.busy_s <= outside.allowed_s:
        return ""
    return (
        f"the GPU was busy for {outside.busy.busy_s:.3g} s during its {outside.runs} timed runs, but its traces "
        f"explain only {outside.explained_s:.3g} s: the tracer did not see all of its work"
    )


def tells_runs_apart(graded_ms: float, median_ms: float) -> str:
    """Why a median is not believed that is far below the time of the graded run, as a phrase, or ''."""
    if graded_ms <= SLOWER_FIRST * median_ms + SLOWER_FIRST_MS:
        return ""
    return (
        f"it took {graded_ms:.4g} ms in the graded run and {median_ms:.4g} ms when it was timed: it seems to tell "
        "these runs apart"
    )


def other_kernel(achieved: float, seen: float) -> str:
    """Why an achieved occupancy is not believed where `seen` was seen outside, as a sentence, or ''."""
    if achieved <= MORE_OCCUPANCY * seen + MORE_OCCUPANCY_BY:
        return ""
    return (
        f"Its achieved occupancy was {achieved:.3f} while it was profiled and {seen:.3f} in its timed runs: it seems "
        "to tell these runs apart. The lower one counts."
    )


def doubts(trace: Trace | None, witness: Witness) -> tuple[str, ...]:
    """Why a run's times cannot be believed, in sentences; none when they can. `trace` is None where nothing was
    received although the program was to be traced."""
    if trace is None:
        return ("It left no trace of the GPU: it made no CUDA call, or kept the tracer from being loaded.",)
    return tuple(sentence for sentence in _of_trace(trace, witness) if sentence)


def _of_trace(trace: Trace, witness: Witness) -> list[str]:
    found = []
    odd = trace.malformed_lines + trace.unknown_lines
    if odd:
        found.append(f"Its trace holds {odd:,} lines that the tracer does not write.")
    if trace.truncated:
        found.append(f"Its trace was read no further than {MAX_EVENTS:,} events, or than a line that cannot be true.")
    if trace.starts > 1:
        found.append(f"Its trace was begun {trace.starts} times: it started itself again, or several CUDA processes.")
    elif trace.starts == 0:
        found.append("Its trace has no beginning.")
    if trace.ends != trace.starts:
        found.append("Its trace has no end: the program was ended by a signal, abort or _exit before CUDA shut down.")
    if trace.engine not in (None, witness.engine):
        found.append(f"Its trace names another engine than {witness.engine}: {line(trace.engine, 40)}.")
    if trace.dropped:
        found.append(f"{trace.dropped:,} events are missing from its trace.")
    if trace.tracer_errors:
        first = trace.tracer_errors[0]
        found.append(f"CUPTI refused the tracer: {line(first.call, 80)} said {line(first.message, 160)}.")
    if not trace.kernels:
        found.append("No kernel ran on the GPU: the program computed on the processor only.")
    return found + _of_times(trace, witness)


def _of_times(trace: Trace, witness: Witness) -> list[str]:
    found = []
    wall_ns = witness.wall_s * 1e9
    if trace.gpu_ns > wall_ns:
        found.append(f"Its trace has {trace.gpu_ns / 1e9:.3g} s of GPU time in {witness.wall_s:.3g} s of wall time.")
    if trace.clock_ns is not None and witness.began_ns and not _during_the_run(trace.clock_ns, witness):
        found.append("Its trace was begun before or after the run, by its own clock: another program wrote it.")
    of_each = [events for events in (trace.kernels, trace.memsets, trace.memcpys) if events]
    if trace.clock_ns and of_each:
        first = min(min(event.start_ns for event in events) for events in of_each)
        last = max(max(event.end_ns for event in events) for events in of_each)
        if first < trace.clock_ns - _CLOCK_SLACK_NS:
            found.append("Its trace has events from before the program began.")
        if last > trace.clock_ns + wall_ns + _CLOCK_SLACK_NS:
            found.append("Its trace has events from after the program had ended.")
    for kernel in trace.kernels:
        x, y, z = kernel.block
        if not 0 < x * y * z <= _MAX_THREADS_PER_BLOCK or 0 in kernel.grid or kernel.end_ns == kernel.start_ns:
            found.append(
                f"Its trace has a kernel that no GPU runs: {line(kernel.name, 100)}, {x}x{y}x{z} threads in a block."
            )
            break
    return found


def _during_the_run(clock_ns: int, witness: Witness) -> bool:
    """Whether a reading of a tracer's clock was taken while the program ran."""
    wall_ns = witness.wall_s * 1e9
    return any(
        began_ns - _CLOCK_STEP_NS <= clock_ns <= began_ns + wall_ns + _CLOCK_STEP_NS for began_ns in witness.began_ns
    )


def computed_on_the_host(
    trace: Trace,
    witness: Witness,
    sequential_s: float,
    timed_runs: Sequence[TimedRunRecord] = (),
    startup_cpu_s: float | None = None,
) -> str:
    """The sentence for a program whose processor time could have been the whole computation, in the graded run or in
    any run that was timed, or ''.

    `sequential_s` is what the sequential program takes for the same work on one core of this machine. `timed_runs`
    are of the same case and launch as much as the graded run, of which `trace` and `witness` are. `startup_cpu_s` is
    what the least CUDA program needs on this machine.
    """
    startup_s = min(STARTUP_CPU_S, STARTUPS * startup_cpu_s) if startup_cpu_s else STARTUP_CPU_S
    launches = len(trace.kernels) + len(trace.memsets) + len(trace.memcpys)
    used = [(witness.cpu_s, trace.gpu_ns / 1e9, trace.copy_ns / 1e9)]
    used += [(run.cpu_s, run.gpu_ms / 1e3, run.copy_ms / 1e3) for run in timed_runs]
    for cpu_s, gpu_s, copying_s in used:
        waiting_s = gpu_s + min(copying_s, COPYING_S_PER_BYTE * witness.file_bytes)
        spare = cpu_s - startup_s - _working_cpu_s(waiting_s, witness.file_bytes, launches)
        if spare >= sequential_s / VECTORISED:
            return (
                f"It used {cpu_s:.3g} s of processor time, {spare:.3g} s more than start-up, files, copies and "
                f"{len(trace.kernels):,} launches explain; the sequential program needs {sequential_s:.3g} s for all "
                "of it."
            )
    return ""


def _working_cpu_s(waiting_s: float, file_bytes: int, launches: int) -> float:
    """Host time of an honest program beyond start-up: a thread that waits for the GPU spins."""
    return CPU_S_PER_BYTE * file_bytes + CPU_S_PER_LAUNCH * launches + 2 * waiting_s


def flags_of(tests: Sequence[TestRecord], profiles: Sequence[ProfileRecord] = ()) -> tuple[str, ...]:
    """The flags of all tests, deduplicated, each with its tests."""
    said: dict[str, list[str]] = {}
    flags = [(test.name, flag) for test in tests for flag in test.flags]
    for name, flag in flags + [(profile.test, profile.flag) for profile in profiles if profile.flag]:
        said.setdefault(flag, []).append(name)
    return tuple(f"{', '.join(names)}: {flag}" for flag, names in said.items())
