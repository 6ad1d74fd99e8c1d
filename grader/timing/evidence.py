"""Decides whether a run's times are credible by comparing its trace with the grader's own observations.

The trace comes from the program's process, so it is only evidence. A program cannot change a line that was written (see
`sandbox.streams.Receiver`), but it can add lines, and it can keep the tracer from being loaded. A forged trace has to
agree with what the grader sees from outside: the wall time, the processor time, and that there is a single process. A
run that does not agree keeps its verdict, which depends on the output file alone, but is not timed and is flagged for
review.

Processor time limits how much a program can have computed on the host, and so exposes host work behind decoy kernels.
An honest program spends host time on start-up, files, copies, launches and waiting; `computed_on_the_host` adds these
up generously. If the processor time beyond that sum is as long as a vectorised program on the same core would need, it
could be the computation itself. The estimate for a vectorised program is 1/`VECTORISED` of the sequential time.

Work that a program hides from the tracer still shows on the outside clock (`grader.gpu.outside_clock`). `hidden_work`
allows for what honest programs need beyond their traced kernels. On an H200 (driver 580, 2026-11-22,
docs/benchmarks.md), they needed 0.2 to 2.9 ms per run for the CUDA context, up to 6 % for long series of kernels, and
the counters' tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from grader.course.testcase import Case
from grader.gpu.outside_clock import TICK_S, Busy
from grader.programs.run import Run
from grader.programs.trace import MAX_EVENTS, Trace
from grader.programs.trace.events import times_of
from grader.records.disclosure import Doubt, line
from grader.records.record import ProfileRecord, TestRecord, TimedRunRecord

STARTUP_CPU_S = 1.5
"""The most processor time that start-up is allowed. Whole runs of flash2.cu with the tracer took 0.2 to 0.55 s
(docs/benchmarks.md); slower machines need more."""
STARTUPS = 3
"""The start-up of a run whose time earns points may take this multiple of a minimal CUDA program's processor time on
this machine, if that is less than STARTUP_CPU_S."""
CPU_S_PER_BYTE = 4e-9
"""Reading a file, converting it, and copying to the device and back: about 1 GB/s each on one core."""
COPYING_S_PER_BYTE = 16e-9
"""The longest allowed wait for copies of input and output: sixteen copies of everything at 1 GB/s. Without this limit,
a program could copy for as long as it likes. Chosen, not measured."""
CPU_S_PER_LAUNCH = 2e-5
"""A launch takes about 2 to 5 µs of host time, a traced one up to twice that."""
VECTORISED = 64
"""The sequential program reaches about 3.6 GFLOP/s and a core with the widest vectors at best about 200, so a program
on one core is less than this many times as fast."""

TRIVIAL_FLOPS = 1000
"""With fewer operations, a program can know the result without computing: a normalised weight of one element is 1."""

BUSY_MS_PER_RUN = 2.5
"""Busy time that each run may need for starting and ending its context: measured 1.4 ms on average, 2.9 ms at most."""
BUSY_MS_PER_LAUNCH = 0.002
"""The GPU also counts as busy between two consecutive kernels."""
BUSY_SHARE = 0.12
"""Share of the traced time: twice what long series of kernels took on an H200 (see above)."""
SLOWER_FIRST = 2.0
"""The graded run may take this many times the median of the timed runs. GPU times repeat within 0.3 %, but clocks may
be lower in the very first run."""
SLOWER_FIRST_MS = 2.0
MORE_OCCUPANCY = 1.15
"""The largest ratio of Nsight Compute's achieved occupancy to the outside clock's that is believed. In 18 honest
programs on an H200, it was never above 1."""
MORE_OCCUPANCY_BY = 0.02

_CLOCK_SLACK_NS = 50_000_000
_CLOCK_STEP_NS = 1_000_000_000
"""The largest adjustment of the machine's clock that is tolerated while a program runs."""


@dataclass(frozen=True)
class Witness:
    """The grader's own observations of a run. `file_bytes` counts input and output. `during_ns` has the run's begin and
    end on each clock that a tracer may use. `flops` counts the floating-point operations that every right program makes
    on the testcase: none if the output has no floats, or if all of it is moved from the input. `replayed`: the run
    replayed a plan, so no host code of the submission ran."""

    engine: str
    wall_s: float
    cpu_s: float
    file_bytes: int
    during_ns: tuple[tuple[int, int], ...] = ()
    flops: int = 0
    replayed: bool = False


def witness_of(engine: str, case: Case, run: Run) -> Witness:
    """The grader's observations of a run of `case` on the named engine."""
    outcome = run.outcome
    file_bytes = case.input_bytes + case.output_bytes
    floats = any(not tensor.type.is_integer for tensor in case.operator.outputs(case.shape))
    flops = case.operator.unavoidable(case.shape)[0] if floats else 0
    return Witness(engine, outcome.wall_s, outcome.cpu_s, file_bytes, run.during_ns, flops, run.replayed)


@dataclass(frozen=True)
class Outside:
    """The outside clock's readings for a series of runs, and the busy time that their traces explain."""

    busy: Busy
    explained_s: float
    runs: int
    launches: int

    @property
    def allowed_s(self) -> float:
        """The longest time for which honest runs with these traces keep the GPU busy."""
        tick = min(1.0, TICK_S / self.busy.interval_s) if self.busy.interval_s > 0 else 1.0
        fixed_ms = BUSY_MS_PER_RUN * self.runs + BUSY_MS_PER_LAUNCH * self.launches
        return (self.explained_s + fixed_ms / 1e3) * (1 + BUSY_SHARE + tick)


def hidden_work(outside: Outside) -> Doubt | None:
    """The reason why the times of a series of runs are refused; None when they are accepted."""
    if outside.busy.busy_s <= outside.allowed_s:
        return None
    return Doubt(
        f"the GPU was busy for {outside.busy.busy_s:.3g} s during its {outside.runs} runs, but its traces "
        f"explain only {outside.explained_s:.3g} s",
        "the tracer did not see all of its work",
    )


def tells_runs_apart(graded_ms: float, median_ms: float) -> Doubt | None:
    """The reason why a median far below the graded run's time is not believed; None if it is believed."""
    if graded_ms <= SLOWER_FIRST * median_ms + SLOWER_FIRST_MS:
        return None
    return Doubt(
        f"it took {graded_ms:.4g} ms in the graded run but {median_ms:.4g} ms when it was timed",
        "the program seems to tell these runs apart",
    )


def other_kernel(achieved: float, seen: float) -> str:
    """A sentence if an achieved occupancy is not believed because the outside clock has `seen` a lower one; else ''."""
    if achieved <= MORE_OCCUPANCY * seen + MORE_OCCUPANCY_BY:
        return ""
    return (
        f"Its achieved occupancy was {achieved:.3f} while it was profiled but {seen:.3f} in its timed runs: the "
        "program seems to tell these runs apart. The lower one counts."
    )


def doubts(trace: Trace | None, witness: Witness) -> tuple[Doubt, ...]:
    """The reasons why a run's times cannot be believed; none if they can. `trace` is None if nothing was received from
    the tracer."""
    if trace is None:
        return (Doubt("It left no trace of the GPU", "it made no CUDA call, or prevented the tracer from loading"),)
    return (*_of_trace(trace, witness), *_of_times(trace, witness))


def _of_trace(trace: Trace, witness: Witness) -> list[Doubt]:
    found = []
    odd = trace.malformed_lines + trace.unknown_lines
    if odd:
        found.append(Doubt(f"Its trace contains {odd:,} lines that the tracer does not write"))
    if trace.truncated:
        found.append(Doubt(f"Its trace was cut after {MAX_EVENTS:,} events, or at a line that cannot be true"))
    if trace.starts > 1:
        found.append(
            Doubt(f"Its trace begins {trace.starts} times", "it restarted itself, or started several CUDA processes")
        )
    elif trace.starts == 0:
        found.append(Doubt("Its trace has no beginning"))
    if trace.ends != trace.starts:
        found.append(Doubt("Its trace has no end", "a signal, abort or _exit ended the program before CUDA shut down"))
    if trace.engine not in (None, witness.engine):
        found.append(Doubt(f"Its trace names an engine other than {witness.engine}", line(trace.engine, 40)))
    if trace.dropped:
        found.append(Doubt(f"{trace.dropped:,} events are missing from its trace"))
    if trace.tracer_errors:
        first = trace.tracer_errors[0]
        found.append(Doubt("CUPTI refused the tracer", f"{line(first.call, 80)} returned {line(first.message, 160)}"))
    if not trace.kernels:
        instead = "its output is constants" if witness.replayed else "the program computed only on the processor"
        found.append(Doubt("No kernel ran on the GPU", instead))
    elif not witness.replayed and trace.computed_floats is False and witness.flops > TRIVIAL_FLOPS:
        found.append(Doubt("Its kernels have no floating-point arithmetic", "the program computed on the processor"))
    return found


def _of_times(trace: Trace, witness: Witness) -> list[Doubt]:
    found = []
    wall_ns = witness.wall_s * 1e9
    if trace.gpu_ns > wall_ns:
        found.append(
            Doubt(f"Its trace has {trace.gpu_ns / 1e9:.3g} s of GPU time in {witness.wall_s:.3g} s of wall time")
        )
    if trace.clock_ns is not None and witness.during_ns and not _during_the_run(trace.clock_ns, witness):
        found.append(
            Doubt("By the tracer's clock, its trace begins before or after the run", "another program wrote it")
        )
    times = times_of([*trace.memsets, *trace.memcpys], trace.kernels)
    if trace.clock_ns and len(times):
        first, last = int(times[:, 0].min()), int(times[:, 1].max())
        if first < trace.clock_ns - _CLOCK_SLACK_NS:
            found.append(Doubt("Its trace has events from before the program began"))
        if last > trace.clock_ns + wall_ns + _CLOCK_SLACK_NS:
            found.append(Doubt("Its trace has events from after the program ended"))
    if instant := next((kernel for kernel in trace.kernels if (kernel.times[:, 0] == kernel.times[:, 1]).any()), None):
        found.append(Doubt("Its trace has a kernel that takes no time", line(instant.name, 100)))
    return found


def _during_the_run(clock_ns: int, witness: Witness) -> bool:
    """True if a reading of the tracer's clock was taken during the run."""
    return any(began - _CLOCK_STEP_NS <= clock_ns <= ended + _CLOCK_STEP_NS for began, ended in witness.during_ns)


def computed_on_the_host(
    trace: Trace,
    witness: Witness,
    sequential_s: float,
    timed_runs: Sequence[TimedRunRecord] = (),
    startup_cpu_s: float | None = None,
) -> Doubt | None:
    """A doubt if a program's processor time, in the graded run or in any timed run, is enough for the whole
    computation.

    `sequential_s` is the sequential program's time for the same work on one core of this machine. `trace` and `witness`
    belong to the graded run; `timed_runs` are runs of the same case, each with the same number of launches.
    `startup_cpu_s` is the processor time of a minimal CUDA program on this machine. A plan has no host code.
    """
    if witness.replayed:
        return None
    startup_s = min(STARTUP_CPU_S, STARTUPS * startup_cpu_s) if startup_cpu_s else STARTUP_CPU_S
    launches = trace.launch_count + len(trace.memsets) + len(trace.memcpys)
    used = [(witness.cpu_s, trace.gpu_ns / 1e9, trace.copy_ns / 1e9)]
    used += [(run.cpu_s, run.gpu_ms / 1e3, run.copy_ms / 1e3) for run in timed_runs]
    for cpu_s, gpu_s, copying_s in used:
        waiting_s = gpu_s + min(copying_s, COPYING_S_PER_BYTE * witness.file_bytes)
        spare = cpu_s - startup_s - _working_cpu_s(waiting_s, witness.file_bytes, launches)
        if spare >= sequential_s / VECTORISED:
            return Doubt(
                f"It used {cpu_s:.3g} s of processor time, {spare:.3g} s more than start-up, files, copies and "
                f"{trace.launch_count:,} launches explain; the sequential program needs {sequential_s:.3g} s for the "
                "whole computation"
            )
    return None


def _working_cpu_s(waiting_s: float, file_bytes: int, launches: int) -> float:
    """Host time of an honest program beyond start-up. It includes waiting, because a thread that waits for the GPU
    spins."""
    return CPU_S_PER_BYTE * file_bytes + CPU_S_PER_LAUNCH * launches + 2 * waiting_s


def flags_of(tests: Sequence[TestRecord], profiles: Sequence[ProfileRecord] = ()) -> tuple[str, ...]:
    """The flags of all tests, deduplicated, each with the names of its tests."""
    said: dict[str, list[str]] = {}
    flags = [(test.name, flag) for test in tests for flag in test.flags]
    for name, flag in flags + [(profile.test, profile.flag) for profile in profiles if profile.flag]:
        said.setdefault(flag, []).append(name)
    return tuple(f"{', '.join(names)}: {flag}" for flag, names in said.items())
