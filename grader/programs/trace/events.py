"""The events of a trace, and the times that follow from them. Times are nanoseconds on the tracer's clock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grader.findings import Finding

Dim3 = tuple[int, int, int]
Direction = Literal["HtoD", "DtoH", "DtoD", "HtoH"]
Space = Literal["global", "shared", "local"]
Operation = Literal["load", "store", "atomic", "reduction", "async_copy"]

NO_COUNTERS: Mapping[str, float] = {}
Interval = tuple[int, int]
Times = NDArray[np.int64]
"""Intervals, one (start, end) a row."""


class KernelEvent(NamedTuple):
    """Launches of a kernel on one stream that differ only in their times; there is one row of `times` for each, in the
    order of their starts. The emulator writes every launch by itself. `registers` and `local_bytes` are per thread,
    shared bytes per block."""

    name: str
    grid: Dim3
    block: Dim3
    registers: int
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    stream: int
    times: Times
    counters: Mapping[str, float] = NO_COUNTERS


@dataclass(frozen=True, slots=True)
class MemcpyEvent:
    """One copy, between the host and the device or within one of them."""

    direction: Direction
    bytes: int
    start_ns: int
    end_ns: int
    stream: int


@dataclass(frozen=True, slots=True)
class MemsetEvent:
    """One fill of device memory."""

    bytes: int
    start_ns: int
    end_ns: int
    stream: int


@dataclass(frozen=True, slots=True)
class ApiError:
    """A CUDA call that failed, for example (cudaMalloc, 2, cudaErrorMemoryAllocation)."""

    function: str
    code: int
    name: str


@dataclass(frozen=True, slots=True)
class AccessEvent:
    """The cost of one load, store or atomic in the source, over all launches of a kernel. Only the emulator writes this
    event, for programs that are built to count.

    `bytes` is per lane. `requests` counts the warps that executed the access, `lanes` their active lanes in total.
    `units` counts 32-byte sectors, or wavefronts for shared memory. `excess` counts the units beyond those that the
    lanes' bytes need (bank conflicts), and `worst` is the most units of any one request. For shared atomics, `excess`
    and `worst` count lanes that waited for another lane with the same address. `stride` is that of the worst request,
    in bytes from lane to lane, or None if it varies. `group` is a kernel, or in a sampled run a `LaunchesEvent`."""

    group: int
    kernel: str
    file: str
    line: int
    ptx_line: int
    space: Space
    operation: Operation
    bytes: int
    stride: int | None
    requests: int
    lanes: int
    units: int
    excess: int
    worst: int


@dataclass(frozen=True, slots=True)
class BranchEvent:
    """How often warps reached a branch, and how often their lanes diverged there, over all launches of a kernel."""

    kernel: str
    file: str
    line: int
    reached: int
    divergent: int


@dataclass(frozen=True, slots=True)
class LaunchesEvent:
    """In a sampled run (GRADER_EMULATOR_SAMPLE): the `count` launches of a kernel with the same grid, block and shared
    memory, on `streams` streams. `entry` is the kernel's name as the linker knows it. Accesses, executions and reuse
    of these launches carry the same `group`; their counts stand for all blocks, also for those that did not run."""

    group: int
    kernel: str
    entry: str
    count: int
    streams: int
    grid: Dim3
    block: Dim3
    static_shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int


@dataclass(frozen=True, slots=True)
class ExecutedEvent:
    """In a sampled run: how many `warps` and `lanes` executed the PTX lines `first`..`last` of `function`. Lines count
    as ptxas counts them."""

    group: int
    function: str
    first: int
    last: int
    warps: int
    lanes: int


@dataclass(frozen=True, slots=True)
class ReuseEvent:
    """In a sampled run: how many lines of 128 bytes a block used between two uses of a sector by one load or store in
    global memory. `near[0]` of the recorded uses had none between, `near[i]` fewer than 2^i, and the last had no
    earlier use. `array` is the address of the first allocation used, `array_bytes` its size."""

    group: int
    ptx_line: int
    array: int
    array_bytes: int
    near: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TracerError:
    """A request that CUPTI refused; the trace may lack events."""

    call: str
    message: str


@dataclass(frozen=True, slots=True)
class KernelSummary:
    """All launches of kernels with one name. `share`, 0..1, is relative to the sum over all kernels."""

    name: str
    launches: int
    total_ns: int
    share: float


def times_of(events: Iterable[MemcpyEvent | MemsetEvent], kernels: Iterable[KernelEvent] = ()) -> Times:
    """The times of all these events, in no order."""
    single = np.array([(event.start_ns, event.end_ns) for event in events], np.int64).reshape(-1, 2)
    return np.concatenate([single, *(kernel.times for kernel in kernels)])


def union_ns(times: Times) -> int:
    """The length of the union of intervals.

    >>> union_ns(np.array([(0, 10), (5, 12), (20, 21)]))
    13
    """
    if not len(times):
        return 0
    start, end = times[np.argsort(times[:, 0])].T
    covered_to = np.maximum.accumulate(end)
    added = end[1:] - np.maximum(start[1:], covered_to[:-1])
    return int(end[0] - start[0] + added[added > 0].sum())


@dataclass(frozen=True)
class Trace:
    """The content of a trace file. The traced program's own process wrote it, so it is evidence, not proof.

    Events are in the file's order. `dropped` counts events that the tracer knows it lost, `malformed_lines` lines that
    no tracer writes, and `unknown_lines` objects of a kind that this reader does not know. `truncated` is set if the
    file continues beyond the reader's limits. `starts` counts the processes that began a trace, `ends` those that
    finished one. `computed_floats`: whether a kernel ran that may compute with floating-point numbers; None if the
    tracer does not say.
    """

    kernels: tuple[KernelEvent, ...] = ()
    memcpys: tuple[MemcpyEvent, ...] = ()
    memsets: tuple[MemsetEvent, ...] = ()
    api_errors: tuple[ApiError, ...] = ()
    findings: tuple[Finding, ...] = ()
    accesses: tuple[AccessEvent, ...] = ()
    branches: tuple[BranchEvent, ...] = ()
    launches: tuple[LaunchesEvent, ...] = ()
    executed: tuple[ExecutedEvent, ...] = ()
    reuse: tuple[ReuseEvent, ...] = ()
    tracer_errors: tuple[TracerError, ...] = ()
    engine: str | None = None
    clock_ns: int | None = None
    dropped: int = 0
    malformed_lines: int = 0
    unknown_lines: int = 0
    truncated: bool = False
    starts: int = 0
    ends: int = 0
    computed_floats: bool | None = None

    @property
    def complete(self) -> bool:
        """Whether the trace holds every event, so that its times may be reported: each process that started a trace
        ended it, CUPTI dropped and refused nothing, and the reader read everything. Where CUPTI refused to record
        kernels, for example, `gpu_ns` is 0 but was never measured."""
        ended = self.starts > 0 and self.starts == self.ends
        return ended and not (self.dropped or self.tracer_errors or self.truncated)

    @cached_property
    def launch_count(self) -> int:
        """The number of kernels that ran."""
        return sum(len(kernel.times) for kernel in self.kernels)

    @property
    def last_kernel(self) -> KernelEvent | None:
        """The kernel that ended last."""
        return max(self.kernels, key=lambda kernel: int(kernel.times[:, 1].max()), default=None)

    @cached_property
    def gpu_ns(self) -> int:
        """The time during which the device worked in its own memory: in a kernel, a memset, or a copy that can do a
        kernel's work. Kernels of different streams can overlap, so the sum of their times would count some twice."""
        return union_ns(self._compute_times)

    @cached_property
    def copy_ns(self) -> int:
        """The time during which a copy to or from the host was running, alone or with other work."""
        return union_ns(self._copy_times)

    @cached_property
    def idle_ns(self) -> int:
        """The time between the first and the last event during which no kernel, memset or copy was running."""
        times = np.concatenate([self._compute_times, self._copy_times])
        return int(times[:, 1].max() - times[:, 0].min()) - union_ns(times) if len(times) else 0

    def kernel_summaries(self) -> tuple[KernelSummary, ...]:
        """One summary for each kernel name, the longest total first."""
        launches, times = Counter[str](), Counter[str]()
        for kernel in self.kernels:
            launches[kernel.name] += len(kernel.times)
            times[kernel.name] += sum((kernel.times[:, 1] - kernel.times[:, 0]).tolist())
        everything = times.total()
        summaries = (
            KernelSummary(name, launches[name], each, each / everything if everything else 0.0)
            for name, each in times.items()
        )
        return tuple(sorted(summaries, key=lambda summary: (-summary.total_ns, summary.name)))

    def by_kernel(self) -> dict[str, Trace]:
        """For each kernel name, a trace with its launches, accesses and branches alone."""
        kernels, accesses, branches = (defaultdict[str, list[Any]](list) for _ in range(3))
        for kernel in self.kernels:
            kernels[kernel.name].append(kernel)
        for found, events in ((accesses, self.accesses), (branches, self.branches)):
            for event in events:
                found[event.kernel].append(event)
        return {
            name: Trace(kernels=tuple(each), accesses=tuple(accesses[name]), branches=tuple(branches[name]))
            for name, each in kernels.items()
        }

    @cached_property
    def _compute_times(self) -> Times:
        within = (copy for copy in self.memcpys if copy.direction == "DtoD")
        return times_of([*self.memsets, *within], self.kernels)

    @cached_property
    def _copy_times(self) -> Times:
        return times_of(copy for copy in self.memcpys if copy.direction != "DtoD")
