"""The GPU time of one test: read from the graded run, repeated, compared, and refused where it cannot be believed."""

from __future__ import annotations

from dataclasses import replace

from grader.gpu.state import GpuState
from grader.grading.bench import Bench, floor_record, timing_record
from grader.grading.session import Trial
from grader.grading.tested import GpuTime, NotMeasured, Refused, Times
from grader.programs.run import Run
from grader.records.disclosure import Doubt
from grader.timing.evidence import computed_on_the_host, doubts, witness_of
from grader.timing.fresh_inputs import FreshInput, OwnInput
from grader.timing.measurement import TimedRun, timed


def graded_time(trial: Trial, run: Run, *, passed: bool) -> Times:
    """The time of the graded run alone. Only a run that passed is doubted: no other earns points for its time."""
    engine, trace = trial.grading.engine, run.trace
    found = doubts(trace, witness_of(engine.name, trial.case, run)) if passed and not run.untraced_reason else ()
    if found:
        tracer_failed = trace is not None and bool(trace.dropped or trace.tracer_errors)
        refused = engine.measures_time and not tracer_failed
        return Times(Refused(found[0]) if refused else NotMeasured(str(found[0])), doubts=found)
    if not engine.measures_time:
        return Times(NotMeasured(f"the {engine.name}'s times say nothing about a GPU"))
    if trace is None or not trace.complete:
        return Times(NotMeasured("the run left no complete trace of the GPU"))
    return Times(GpuTime(trace.gpu_ns / 1e6))


def measured_time(trial: Trial, times: Times, run: Run, state: GpuState | None, own: OwnInput, since: object) -> Times:
    """The time of a test that passed: repeated on fresh inputs if it is timed, held against the floor, compared with
    the sequential program and a reference solution. `state` is the GPU's during the graded run, `since` the outside
    clock's mark before it."""
    first = timed(run, state)
    if not isinstance(times.gpu, GpuTime) or isinstance(first, Doubt):
        return times
    if (bench := trial.grading.bench) is not None:
        times = _repeated(trial, bench, times, first, own if isinstance(own, FreshInput) else None, since)
    if isinstance(times.gpu, GpuTime) and times.gpu.ms:
        times = _compared(trial, times)
    if run.trace is None or times.baseline is None:
        return times
    runs = times.timing.runs if times.timing is not None else ()
    startup_cpu_s = bench.start_up_cpu_s if bench is not None and runs else None
    witness = witness_of(trial.grading.engine.name, trial.case, run)
    why = computed_on_the_host(run.trace, witness, times.baseline.seconds, runs, startup_cpu_s)
    return times.refused(why) if why is not None else times


def _repeated(
    trial: Trial, bench: Bench, times: Times, first: TimedRun, fresh: FreshInput | None, since: object
) -> Times:
    ms: float | None = first.gpu_ms
    refused, shared, notes, timing = None, "", tuple[str, ...](), None
    if fresh is not None:
        with trial.watch.stage("fresh inputs and their checks"):
            timing = bench.timer.time(trial.program, trial.case, fresh, wall_s=trial.limit_s, first=first, since=since)
            trial.watch.add("timed runs", timing.run_wall_s)
        if timing.problem is not None:
            detail = (timing.problem.detail, "its time is refused and earns no points")
            refused = Doubt(f"It passed, but {timing.problem.what}", ": ".join(filter(None, detail)))
        elif timing.shared_with:
            ms, shared = None, timing.shared_with
        elif timing.median_ms is not None:
            ms, notes = timing.median_ms, timing.notes
    floor = bench.floor(trial.case)
    if floor is not None and ms is not None:
        refused = refused or floor.refusal(ms)
    times = replace(
        times,
        timing=timing_record(timing, trial.grading.assignment) if timing is not None else None,
        floor=floor_record(floor, ms) if floor is not None else None,
        notes=notes,
    )
    if refused is not None:
        return replace(times, notes=(*notes, refused.told(secret=False))).refused(refused, ms)
    if ms is None:
        why = (
            f"The GPU was also used by {shared} while this test was timed: its time was not measured. "
            "Stop that program, and grade again."
        )
        return replace(times, gpu=NotMeasured(why), notes=(why,))
    return replace(times, gpu=GpuTime(ms))


def _compared(trial: Trial, times: Times) -> Times:
    """The times with those of the sequential program and of a reference solution."""
    grading = trial.grading
    if grading.baseline is not None:
        with trial.watch.stage("baseline"):
            times = replace(times, baseline=grading.baseline(trial.case))
    if grading.bench is not None:
        with trial.watch.stage("reference solution"):
            times = replace(times, reference=grading.bench.reference(trial.case, trial.limit_s))
    return times
