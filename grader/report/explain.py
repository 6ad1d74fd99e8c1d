"""Explains where every number of a record comes from: total, parts, tests, runs. It recomputes each of them.

The report marks numbers that do not follow from their inputs. A comparison of two records begins with what could make
their numbers incomparable: another baseline, another GPU, other rules.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from statistics import median

from grader.base.stopwatch import overhead
from grader.operators import shape_words
from grader.records.record import BaselineRecord, ProfileRecord, Record, TestRecord, TimingRecord
from grader.timing.stopping import mean_interval, median_interval

WIDTH = 110
_CLOSE = 1e-6


def explain(record: Record) -> str:
    """Explain a whole record."""
    prepared = record.machine.gpu_prepared
    lines = [
        f"{record.submission.id} · {record.assignment} · {record.created} · grader {record.grader}",
        f"on {record.engine.device}, " + ", ".join(f"{k} {v}" for k, v in record.engine.facts.items()),
        *(_wrapped(_rescoring(record), "") if record.rescored is not None else ()),
        *(_wrapped(f"the GPU before the first run: {prepared}", "") if prepared else ()),
        f"rules {record.assignment_sha256[:12]}, submission {record.submission.sha256[:12]}, "
        f"built with {' '.join(record.build.flags)} (from {record.build.flags_from})",
        "",
        *_total(record),
    ]
    for test in record.tests:
        lines += ["", *_test(test)]
    for profile in record.profiles:
        lines += ["", *_profile(profile)]
    if record.timings:
        lines += ["", render_timings(record)]
    return "\n".join(lines)


def _total(record: Record) -> Iterator[str]:
    points = [part.points for part in record.parts if part.points is not None]
    total = record.scores.total
    if total is None:
        unjudged = ["a test could not be judged, through no fault of the student"] * record.infrastructure_failed
        why = "this was practice" if record.practice else "; ".join([*unjudged, *record.not_measured])
        yield f"There is no total: {why}."
    else:
        parts = " + ".join(f"{point:g}" for point in points)
        yield f"total {total:g} of {record.scores.max:g} = {parts}{_agrees(sum(points), total, 0.006)}"
    for part in record.parts:
        given = "-" if part.points is None else f"{part.points:g}"
        yield from _wrapped(f"{part.part} {given} of {part.max:g}: {part.how}", "  ")


def _test(test: TestRecord) -> Iterator[str]:
    why = f": {test.reason}" if test.reason else ""
    yield from _wrapped(f"{test.name} ({shape_words(test.shape)}) {test.verdict}{why}", "")
    if test.input_digest:
        yield f"  input {test.input_digest[:12]}, seed {test.seed}"
    if test.max_error is not None:
        yield f"  largest error {test.max_error:.3g}"
    for found in test.precision:
        yield from _wrapped(str(found), "    ")
    if test.gpu_ms is not None:
        yield from _time(test)
    if test.timing_refused:
        yield from _wrapped(test.timing_refused, "  ")
    if test.floor is not None:
        floor = test.floor
        share = f"; that is {floor.share:.1%} of the measured time ({floor.tflops:.2f} TFLOP/s)" if floor.share else ""
        agrees = _agrees(max(term.ms for term in floor.terms), floor.ms, _CLOSE * floor.ms)
        yield f"  the floor is {floor.ms:.4g} ms, set by {floor.limit}{share}{agrees}"
        for term in floor.terms:
            yield from _wrapped(f"{term.name}: {term.ms:.4g} ms, from {term.source}", "    ")
    if test.speedup is not None and test.baseline is not None and test.gpu_ms:
        again = test.baseline.seconds * 1e3 / test.gpu_ms
        text = f"speedup {test.speedup:,.2f} = {test.baseline.seconds:.6g} s / {test.gpu_ms:.6g} ms"
        yield f"  {text}{_agrees(again, test.speedup, _CLOSE * again)}"
        yield from _wrapped(f"the sequential time: {test.baseline.description}", "    ")
        yield f"    source {test.baseline.source_sha256[:12]}"
    if test.reference_ms and test.gpu_ms:
        yield from _reference(test, test.gpu_ms / test.reference_ms, test.reference_ms)


def _reference(test: TestRecord, ratio: float, reference_ms: float) -> Iterator[str]:
    yield f"  {ratio:.4f} times the {reference_ms:.6g} ms of the reference solution, timed in the same grading"
    if test.reference is not None:
        yield f"    {test.reference.name}, source {test.reference.sha256[:12]}"
        yield from _timing("reference's GPU time", reference_ms, test.reference.timing)


def _time(test: TestRecord) -> Iterator[str]:
    if test.gpu_ms is None or test.timing is None:
        yield f"  GPU time {test.gpu_ms:.6g} ms, from one run; wall time {test.wall_s} s, limit {test.limit_s} s"
    else:
        yield from _timing("GPU time", test.gpu_ms, test.timing)


def _timing(what: str, gpu_ms: float, timing: TimingRecord) -> Iterator[str]:
    counted = [run.gpu_ms for run in timing.runs if run.use == "counted"]
    interval = (
        f", {timing.confidence:.1%} interval {timing.low_ms:.6g} to {timing.high_ms:.6g}"
        if timing.low_ms is not None and timing.high_ms is not None and timing.confidence is not None
        else ", too few runs for an interval"
    )
    agrees = _agrees(median(counted), gpu_ms, _CLOSE * gpu_ms) if counted else ""
    again = median_interval(counted) or mean_interval(counted)
    if again is not None and timing.low_ms is not None and timing.high_ms is not None:
        for end, recorded in ((again.low, timing.low_ms), (again.high, timing.high_ms)):
            agrees = agrees or _agrees(end, recorded, _CLOSE * recorded)
    yield f"  {what} {gpu_ms:.6g} ms: median of {len(counted)} runs{interval}{agrees}"
    yield from _wrapped(f"stopped: {timing.stopped}; rule: {timing.rule}", "    ")
    for run in timing.runs:
        clocks = f", {run.sm_mhz} MHz, {run.temperature_c} °C, {run.power_w:.0f} W" if run.sm_mhz else ""
        marks: list[str] = [run.use] if run.use != "counted" else []
        marks += ["outlier"] if run.outlier else []
        marks += [f"slowed: {', '.join(run.slowed)}"] if run.slowed else []
        times = f"copies {run.copy_ms:.4g}, idle {run.idle_ms:.4g} ms; CPU {run.cpu_s:.3f} s, wall {run.wall_s:.3f} s"
        yield f"    {run.gpu_ms:.6g} ms; {times}{clocks}{' (' + '; '.join(marks) + ')' if marks else ''}"
    for note in timing.notes:
        yield from _wrapped(note, "    ")


def _profile(profile: ProfileRecord) -> Iterator[str]:
    achieved = f"{profile.achieved:.4f}" if profile.achieved is not None else f"not measured: {profile.reason}"
    yield from _wrapped(f"occupancy on {profile.test}: {achieved}", "")
    for said in profile.counted:
        yield from _wrapped(said, "  ")
    for kernel in profile.kernels:
        if kernel.limiter:
            yield from _wrapped(f"{kernel.name}: theoretical {kernel.theoretical:.3f}; {kernel.limiter}", "  ")


def _agrees(computed: float, recorded: float, tolerance: float) -> str:
    if abs(computed - recorded) <= tolerance:
        return ""
    advice = "the record was edited, or is from another version of the grader"
    return f"  [DOES NOT FOLLOW: the recomputed value is {computed:.6g}; {advice}]"


def _wrapped(text: str, indent: str) -> Iterator[str]:
    yield textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")


def render_timings(record: Record) -> str:
    """The duration of each stage of the grading, and the grader's overhead."""
    timings = record.timings
    lines = ["seconds by stage:"]
    lines += [f"  {stage:<32} {seconds:9.3f}" for stage, seconds in timings.items()]
    factor = overhead(timings)
    if factor is not None:
        lines.append(f"  wall time is {factor:.3f} x (compiling + the submission's own runs)")
    return "\n".join(lines)


# ---- two records ------------------------------------------------------------------------------------------------


def differences(first: Record, second: Record) -> list[str]:
    """Sentences on what makes the numbers of two records incomparable; none if nothing does."""
    found = []
    pairs = (
        ("grader", str(first.grader), str(second.grader), "it may measure and judge in another way"),
        ("rules", first.assignment_sha256[:12], second.assignment_sha256[:12], "the points follow different rules"),
        ("GPU", first.engine.device, second.engine.device, "GPU times cannot be compared"),
        (
            "driver",
            first.engine.facts.get("driver"),
            second.engine.facts.get("driver"),
            "GPU times may differ because of it",
        ),
        (
            "compiler",
            first.engine.facts.get("compiler"),
            second.engine.facts.get("compiler"),
            "times may differ because of it",
        ),
    )
    for what, one, other, therefore in pairs:
        if one != other:
            found.append(f"another {what}: {one} and {other}; {therefore}.")
    references = {test.name: test.reference for test in first.tests if test.reference}
    for test in second.tests:
        one_ref, other_ref = references.get(test.name), test.reference
        if one_ref is not None and other_ref is not None and one_ref.sha256 != other_ref.sha256:
            found.append(f"another reference solution from {test.name} on; ratios to it cannot be compared.")
            break
    baselines = {test.name: test.baseline for test in first.tests if test.baseline}
    for test in second.tests:
        one_base, other_base = baselines.get(test.name), test.baseline
        if one_base is None or other_base is None or one_base == other_base:
            continue
        if one_base.source_sha256 != other_base.source_sha256:
            found.append(
                f"another baseline from {test.name} on: another sequential program; speedups cannot be compared."
            )
        elif one_base.cpu != other_base.cpu:
            found.append(
                f"another baseline from {test.name} on: timed on {one_base.cpu} and on {other_base.cpu}; "
                "speedups cannot be compared."
            )
        else:
            change = other_base.seconds / one_base.seconds - 1
            found.append(
                f"another baseline from {test.name} on: {one_base.seconds:.4g} s{_named(one_base)} and "
                f"{other_base.seconds:.4g} s{_named(other_base)} ({change:+.1%}); speedups differ by that much even if "
                "the submission does not."
            )
        break
    return found


def _named(baseline: BaselineRecord) -> str:
    return f" ({baseline.id}, {baseline.date[:10]})" if baseline.id and baseline.date else ""


def compare(first: Record, second: Record, *, headings: tuple[str, str]) -> str:
    """Show two records side by side, after warnings about what cannot be compared."""
    lines = [f"warning: {text}" for text in differences(first, second)]
    lines += [""] if lines else []
    lines.append(f"{'':12} {headings[0]:>20} {headings[1]:>20}")
    others = {part.part: part for part in second.parts}
    for part in first.parts:
        other = others.get(part.part)
        lines.append(f"{part.part:12} {_points(part.points):>20} {_points(other.points if other else None):>20}")
    for part in first.parts if first.assignment_sha256 != second.assignment_sha256 else ():
        other = others.get(part.part)
        if other is not None and other.how != part.how:
            lines += [line for how in (part.how, other.how) for line in _wrapped(f"{part.part}: {how}", "  ")]
    lines += [f"{headings[1]}: {_rescoring(second)}"] if second.rescored is not None else []
    tests = {test.name: test for test in second.tests}
    for test in first.tests:
        if test.name in tests:
            lines.append(f"{test.name:12} {_ms(test):>20} {_ms(tests[test.name]):>20}")
    return "\n".join(lines)


def _rescoring(record: Record) -> str:
    """A sentence on points that were computed again from stored measurements; '' for others."""
    if (again := record.rescored) is None:
        return ""
    ran = f", and {', '.join(again.ran)} ran again for it" if again.ran else ""
    return f"points were computed again from stored measurements on {again.created} by grader {again.grader}{ran}."


def _points(points: float | None) -> str:
    return "-" if points is None else f"{points:g}"


def _ms(test: TestRecord) -> str:
    return f"{test.gpu_ms:,.4g} ms" if test.gpu_ms is not None else str(test.verdict)
