"""The state of a GPU while a program runs on it, read through NVML: clocks, temperature, power, throttling.

A thread samples every 20 ms; one sample takes about 50 µs on the host and no time on the GPU. The constants are NVML's
(nvml.h, nvmlClocksEventReason*).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import pynvml

from grader.gpu.nvml import nvml_device

SAMPLE_EVERY_S = 0.02

SLOWED: dict[int, str] = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "temperature (driver)",
    0x40: "temperature (hardware)",
    0x80: "power brake",
}
"""Reasons that mean that the GPU ran slower than requested. The others, idle (0x1), chosen application clocks (0x2),
sync boost (0x10) and display clocks (0x100), are not slowdowns."""


@dataclass(frozen=True)
class Instant:
    """One reading. Clocks in MHz, temperature in °C, power in W; `reasons` is NVML's bit mask."""

    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    reasons: int


@dataclass(frozen=True)
class GpuState:
    """A summary of the samples of one run: median clocks, and the highest temperature and power. `slowed` names the
    reasons for which the GPU was throttled, if it was."""

    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    slowed: tuple[str, ...]

    @property
    def throttled(self) -> bool:
        return bool(self.slowed)


def summarise(samples: Sequence[Instant]) -> GpuState | None:
    """Summarise the samples of one run; None if there are none. The clocks come from the samples in which the GPU was
    busy, or else from all. A reason counts if a single sample has it."""
    if not samples:
        return None
    busy = [sample for sample in samples if not sample.reasons & 0x1] or list(samples)
    reasons = 0
    for sample in samples:
        reasons |= sample.reasons
    return GpuState(
        sm_mhz=round(median(sample.sm_mhz for sample in busy)),
        memory_mhz=round(median(sample.memory_mhz for sample in busy)),
        temperature_c=max(sample.temperature_c for sample in samples),
        power_w=max(sample.power_w for sample in samples),
        slowed=tuple(name for bit, name in SLOWED.items() if reasons & bit),
    )


class Watch:
    """Collects samples until it is stopped; then `state` summarises them."""

    def __init__(self) -> None:
        self.samples: list[Instant] = []
        self.ended = threading.Event()

    def stop(self) -> None:
        """Stop sampling before the block ends, because the watched program has ended."""
        self.ended.set()

    @property
    def state(self) -> GpuState | None:
        return summarise(self.samples)


Reader = Callable[[], Instant | None]


@contextlib.contextmanager
def watching(read: Reader | None, every_s: float = SAMPLE_EVERY_S) -> Iterator[Watch]:
    """Take samples with `read` in a thread, at least one, until the block ends or the watch is stopped. Without `read`,
    take no samples."""
    watch = Watch()
    if read is None:
        yield watch
        return

    def sample() -> None:
        while True:
            reading = read()
            if reading is None:
                return
            watch.samples.append(reading)
            if watch.ended.wait(every_s):
                return

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield watch
    finally:
        watch.stop()
        thread.join()


@contextlib.contextmanager
def nvml_reader(uuid: str) -> Iterator[Reader | None]:
    """A function that samples the GPU with this UUID; None if NVML does not know it."""
    with nvml_device(uuid) as handle:
        yield None if handle is None else lambda: _sample(handle)


def _sample(handle: Any) -> Instant | None:
    try:
        return Instant(
            sm_mhz=int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM)),
            memory_mhz=int(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM)),
            temperature_c=int(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)),
            power_w=pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
            reasons=int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
        )
    except pynvml.NVMLError:
        return None
