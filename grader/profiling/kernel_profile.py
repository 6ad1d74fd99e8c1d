"""The profile of a program: for each kernel, counters from Nsight Compute, and facts from the trace and the launch.

Long programs are sampled: a few launches of each kernel are profiled, spread evenly over the run. A program can make
more than ten thousand launches, and ncu takes 50 ms to 250 ms for each. The result says how many were profiled.

Achieved occupancy for the score. Each kernel is weighted by its share of GPU time. Kernels with less than 1 % of that
time, and kernels that read no global memory (fills, for example), are left out: they do none of the work and would be a
cheap way to raise the average. No kernel counts for more than its theoretical occupancy, which follows from the launch.
While several kernels run at once, only the one with the lowest occupancy counts. If the median by time is lower than
the mean, the median is the score. So a kernel that is launched only for its occupancy changes nothing until it takes as
long as all the others together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from grader.course.metrics import DRAM_BYTES, FLOPS, OCCUPANCY, READ_BYTES, Metric, stall_reasons
from grader.findings import short_kernel
from grader.profiling.kernel_time import counted_ns, weighted_median
from grader.profiling.ncu import Launch
from grader.profiling.occupancy import Demand, Occupancy
from grader.programs.trace import AccessEvent, KernelEvent, KernelSummary, Trace

LEAST_SHARE = 0.01
"""A kernel with a smaller share of GPU time does not count in the occupancy score."""

_LEAST_PER_KERNEL = 3
_TOP_STALLS = 3
_SPARE = 1.02
"""Counters may exceed the launch's limits by 2 %, because they are averages over a few SMs in several passes."""


@dataclass(frozen=True)
class Range:
    """A metric over the profiled launches of one kernel."""

    low: float
    high: float
    mean: float


@dataclass(frozen=True)
class KernelProfile:
    """One kernel. `gpu_ns` is the sum over all its launches in the trace, and `share` its part of the sum over all
    kernels. `ranges` holds the metrics that were measured. `intensity` is FP32 operations per byte of device memory
    traffic and `tflops` their rate, None if not measured. Only the emulator fills in `mix` (the shares, 0..1, of the
    warps' instructions by class), `accesses` (the costs of source lines) and `advice` on them."""

    name: str
    launches: int
    profiled: int
    gpu_ns: int
    share: float
    theoretical: Occupancy | None
    ranges: Mapping[str, Range]
    stalls: tuple[tuple[str, str, float], ...] = ()
    intensity: float | None = None
    tflops: float | None = None
    reads: bool | None = None
    mix: Mapping[str, float] = field(default_factory=dict)
    accesses: tuple[AccessEvent, ...] = ()
    advice: tuple[str, ...] = ()

    @property
    def achieved(self) -> float | None:
        """Achieved occupancy, 0..1, but at most what the launch allows."""
        found = self.ranges.get("achieved_occupancy")
        if found is None:
            return None
        return min(found.mean, self.theoretical.theoretical) if self.theoretical else found.mean

    @property
    def implausible(self) -> bool:
        """True if the counters report more than the launch allows: someone tampered with them, or they belong to
        another kernel."""
        found = self.ranges.get("achieved_occupancy")
        return found is not None and self.theoretical is not None and found.mean > _SPARE * self.theoretical.theoretical


@dataclass(frozen=True)
class ProfileStudy:
    """The report of `grader profile`. `notes` say what was sampled and what could not be measured."""

    submission: str
    test: str
    shape: tuple[int | float, ...]
    device: str
    gpu_ms: float | None
    metrics: tuple[Metric, ...]
    kernels: tuple[KernelProfile, ...]
    notes: tuple[str, ...]


Theory = Callable[[Demand], Occupancy]


def plan(trace: Trace, launches: int) -> tuple[int, ...] | None:
    """Choose which launches of each kernel to profile, counted from 1; None for all of them."""
    counts = [summary.launches for summary in trace.kernel_summaries()]
    if sum(counts) <= launches:
        return None
    each = max(_LEAST_PER_KERNEL, launches // len(counts))
    chosen: set[int] = set()
    for count in counts:
        chosen.update(1 + index * count // each for index in range(min(each, count)))
    return tuple(sorted(chosen))


def kernel_profiles(
    trace: Trace, launches: Sequence[Launch], metrics: Sequence[Metric], theory: Theory | None
) -> tuple[KernelProfile, ...]:
    """Profile each kernel of the trace, the longest first. Without `launches`, profiles contain only facts from the
    trace and the launch."""
    found: dict[str, list[Launch]] = {}
    for launch in launches:
        found.setdefault(launch.kernel, []).append(launch)
    first: dict[str, KernelEvent] = {}
    for kernel in trace.kernels:
        first.setdefault(kernel.name, kernel)
    return tuple(
        _profile(summary, found.get(summary.name, []), metrics, theory and theory(_demand(first[summary.name])))
        for summary in trace.kernel_summaries()
    )


def _demand(kernel: KernelEvent) -> Demand:
    x, y, z = kernel.block
    return Demand(kernel.registers, x * y * z, kernel.static_shared_bytes, kernel.dynamic_shared_bytes)


def _profile(
    summary: KernelSummary, launches: Sequence[Launch], metrics: Sequence[Metric], theoretical: Occupancy | None
) -> KernelProfile:
    ranges = {}
    for metric in metrics:
        values = [value for launch in launches if (value := metric.value(launch.values)) is not None]
        if values:
            ranges[metric.name] = Range(min(values), max(values), fmean(values))
    flops = sum(times * launch.values.get(word, 0.0) for launch in launches for word, times in FLOPS.items())
    traffic = sum(launch.values.get(DRAM_BYTES, 0.0) for launch in launches)
    seconds = sum(launch.duration_ns for launch in launches) / 1e9
    reads = [launch.values[READ_BYTES] > 0 for launch in launches if READ_BYTES in launch.values]
    return KernelProfile(
        name=summary.name,
        launches=summary.launches,
        profiled=len(launches),
        gpu_ns=summary.total_ns,
        share=summary.share,
        theoretical=theoretical,
        ranges=ranges,
        stalls=_stalls(launches),
        intensity=flops / traffic if flops and traffic else None,
        tflops=flops / seconds / 1e12 if flops and seconds else None,
        reads=any(reads) if reads else None,
    )


def _stalls(launches: Sequence[Launch]) -> tuple[tuple[str, str, float], ...]:
    """The states in which the kernel's warps wait longest, weighted by the launches' durations."""
    weights: dict[tuple[str, str], float] = {}
    total = sum(launch.duration_ns for launch in launches) or 1.0
    for launch in launches:
        for word, meaning, value in stall_reasons(launch.values):
            weights[word, meaning] = weights.get((word, meaning), 0.0) + value * launch.duration_ns / total
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    return tuple((word, meaning, value) for (word, meaning), value in ordered[:_TOP_STALLS])


@dataclass(frozen=True)
class ScoredOccupancy:
    """Achieved occupancy for the score, or the reason why there is none. `kernels` has a sentence for each kernel: its
    weight in the score, or why it was left out."""

    achieved: float | None
    reason: str
    kernels: tuple[str, ...]


def scored_occupancy(profiles: Sequence[KernelProfile], kernels: Sequence[KernelEvent] = ()) -> ScoredOccupancy:
    """The mean of the achieved occupancies of the kernels that do the work, weighted by GPU time, or their median
    if that is lower. `kernels` are the launches of the trace; without them, no launch is assumed to overlap another."""
    said, working = [], []
    for profile in profiles:
        short = short_kernel(profile.name)
        if profile.share < LEAST_SHARE:
            said.append(f"{short}: left out, {profile.share:.2%} of the GPU time")
        elif profile.reads is False:
            said.append(f"{short}: left out, it reads no global memory")
        elif profile.implausible:
            most = profile.theoretical.theoretical if profile.theoretical else 1.0
            reason = (
                f"{short} reports {profile.ranges['achieved_occupancy'].mean:.3f} but its launch allows only "
                f"{most:.3f}: a person should look at this"
            )
            return ScoredOccupancy(None, reason, (*said, reason))
        elif profile.achieved is None:
            reason = f"{short}, {profile.share:.0%} of the GPU time, was not profiled"
            return ScoredOccupancy(None, reason, (*said, reason))
        else:
            working.append(profile)
    if not working:
        return ScoredOccupancy(None, "no kernel that reads global memory took 1 % of the GPU time", tuple(said))
    return _weighed(working, kernels, said)


def _weighed(working: Sequence[KernelProfile], kernels: Sequence[KernelEvent], said: list[str]) -> ScoredOccupancy:
    achieved = {profile.name: profile.achieved or 0.0 for profile in working}
    times = counted_ns(kernels, achieved) if kernels else {profile.name: profile.gpu_ns for profile in working}
    total = sum(times.values())
    for profile in working:
        limit = f" of {profile.theoretical.theoretical:.3f} possible" if profile.theoretical else ""
        weight = times[profile.name] / total
        said.append(
            f"{short_kernel(profile.name)}: {achieved[profile.name]:.3f}{limit}, weight {weight:.1%}, "
            f"{profile.profiled:,} of {profile.launches:,} launches profiled"
        )
    mean = sum(achieved[name] * time for name, time in times.items()) / total
    median = weighted_median([(achieved[name], time) for name, time in times.items()])
    if median < mean:
        said.append(
            f"for half of the GPU time, occupancy is {median:.3f} or less: the median counts, not the mean, {mean:.3f}"
        )
    return ScoredOccupancy(min(mean, median), "", tuple(said))


SCORE_METRICS = (OCCUPANCY, READ_BYTES)
"""The only metrics that the score needs; ncu collects them in few passes."""
