"""The time that a GPU was busy, read by the grader outside the program: a clock that the program cannot set.

The trace is written inside the program's process, so a program can forge it, pause it, or work where the tracer does
not look. This module reads the GPU's own counters before and after a series of runs. They show how long the GPU was
busy, but not with what; `grader.timing.evidence` compares that with the time that the traces explain.

There are two sources; the grader uses the first that the GPU supports:

    GPM          counters of Hopper and later, through NVML's nvmlGpm functions. An ordinary user may read them (checked
                 on an H200, driver 580). Busy time is the graphics utilisation times the interval. They also report the
                 share of active warps on busy SMs, which is achieved occupancy.
    utilisation  NVML's buffer of utilisation samples: the share of each sampling period, 1/6 to 1 s, in which a kernel
                 ran, in whole per cents. On every GPU since Kepler.

Both are updated periodically: the work of a program may appear up to 0.1 s after its end. So a reading waits until 0.1
s after the end of the grader's last program (docs/benchmarks.md), which callers report with `worked`.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import pynvml

from grader.gpu.nvml import nvml_device

SETTLE_S = 0.1
"""The wait between the end of a program and a reading. On an H200, readings taken 0.1 s after a program's end were 0.79
to 1.11 times those taken 0.2 s later (232 runs). Readings taken after 0.06 s were only 0.13 times the later ones in the
worst case."""
TICK_S = 0.1
"""The counters are refreshed at about this interval. So the difference of two readings can cover up to this much more
or less time than passed between the readings."""


@dataclass(frozen=True)
class Busy:
    """The GPU's work between two marks: it was busy for `busy_s` of `interval_s` seconds. `occupancy` is the share of
    active warps on SMs that had any, 0..1; None if the source does not report it."""

    source: str
    interval_s: float
    busy_s: float
    occupancy: float | None = None


class OutsideClock(Protocol):
    """Reads one GPU. A mark is a point in time."""

    def worked(self, until: float) -> None:
        """Note that the GPU may have worked for the grader until this time of `time.monotonic`."""

    def mark(self) -> Any:
        """Take a mark, as soon as the counters include all work that was noted."""

    def between(self, first: Any, second: Any) -> Busy | None:
        """The work between two marks; None if the GPU does not report it."""


class _Settling:
    """Waits until the counters include all work that was noted."""

    _worked_until = 0.0

    def worked(self, until: float) -> None:
        self._worked_until = max(until, self._worked_until)

    def _settle(self) -> None:
        time.sleep(max(0.0, self._worked_until + SETTLE_S - time.monotonic()))


@contextlib.contextmanager
def outside_clock(uuid: str) -> Iterator[OutsideClock | None]:
    """The clock of the GPU with this UUID; None if the GPU supports neither source."""
    with nvml_device(uuid) as handle:
        yield None if handle is None else _gpm_clock(handle) or _utilisation_clock(handle)


# ---- GPM --------------------------------------------------------------------------------------------------------


class _Sample:
    """The counters at one time. NVML allocated their memory, which is freed with this object."""

    def __init__(self, counters: Any) -> None:
        self.counters = counters
        self.at = 0.0
        weakref.finalize(self, pynvml.nvmlGpmSampleFree, counters)


class GpmClock(_Settling):
    """NVML's GPM counters of one device."""

    _METRICS = (
        pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
        pynvml.NVML_GPM_METRIC_SM_UTIL,
        pynvml.NVML_GPM_METRIC_SM_OCCUPANCY,
    )

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    def mark(self) -> _Sample:
        self._settle()
        sample = _Sample(pynvml.nvmlGpmSampleAlloc())
        pynvml.nvmlGpmSampleGet(self._handle, sample.counters)
        sample.at = time.monotonic()
        return sample

    def between(self, first: _Sample, second: _Sample) -> Busy | None:
        asked = pynvml.c_nvmlGpmMetricsGet_t()
        asked.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        asked.numMetrics = len(self._METRICS)
        asked.sample1, asked.sample2 = first.counters, second.counters
        for place, metric in enumerate(self._METRICS):
            asked.metrics[place].metricId = metric
        try:
            pynvml.nvmlGpmMetricsGet(asked)
        except pynvml.NVMLError:
            return None
        if any(asked.metrics[place].nvmlReturn for place in range(len(self._METRICS))):
            return None
        busy, sms, warps = (asked.metrics[place].value / 100 for place in range(len(self._METRICS)))
        interval_s = second.at - first.at
        return Busy("GPM", interval_s, busy * interval_s, warps / sms if sms > 0 else None)


def _gpm_clock(handle: Any) -> GpmClock | None:
    try:
        supported = pynvml.nvmlGpmQueryDeviceSupport(handle).isSupportedDevice
    except pynvml.NVMLError:
        return None
    return GpmClock(handle) if supported else None


# ---- utilisation samples ----------------------------------------------------------------------------------------


class UtilisationClock(_Settling):
    """NVML's buffer of utilisation samples: (time in microseconds, per cent of the period that ended then)."""

    def __init__(self, read: Callable[[int], list[tuple[int, int]]]) -> None:
        self._read = read

    def mark(self) -> tuple[float, int]:
        self._settle()
        return time.monotonic(), time.time_ns() // 1000

    def between(self, first: tuple[float, int], second: tuple[float, int]) -> Busy | None:
        samples = sorted(self._read(first[1]))
        if len(samples) < 2:
            return None
        busy_us, before = 0.0, first[1]
        for at, percent in samples:
            end = min(at, second[1])
            busy_us += max(0, end - before) * percent / 100
            before = max(before, end)
        return Busy("utilisation", second[0] - first[0], busy_us / 1e6)


def _utilisation_clock(handle: Any) -> UtilisationClock | None:
    def read(since_us: int) -> list[tuple[int, int]]:
        try:
            _, samples = pynvml.nvmlDeviceGetSamples(handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, since_us)
        except pynvml.NVMLError:
            return []
        return [(int(sample.timeStamp), int(sample.sampleValue.uiVal)) for sample in samples]

    return UtilisationClock(read) if read(0) else None
