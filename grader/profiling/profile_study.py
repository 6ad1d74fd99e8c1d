"""The profile of one submission on one testcase: its kernels, and the device's limits to hold them against."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.metrics import Metric
from grader.profiling.kernel_profile import KernelProfile
from grader.profiling.roofline import Roof


@dataclass(frozen=True)
class ProfileStudy:
    """What `grader profile` reports. `notes` say what was sampled and what could not be measured. `roofs` and
    `bandwidth` (bytes per second) are the device's limits, empty and None where they are not known."""

    submission: str
    test: str
    shape: tuple[int | float, ...]
    device: str
    gpu_ms: float | None
    metrics: tuple[Metric, ...]
    kernels: tuple[KernelProfile, ...]
    notes: tuple[str, ...]
    roofs: tuple[Roof, ...] = ()
    bandwidth: float | None = None
