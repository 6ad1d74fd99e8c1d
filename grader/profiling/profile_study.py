"""The profile of one submission on one testcase."""

from __future__ import annotations

from dataclasses import dataclass

from grader.course.metrics import Metric
from grader.profiling.kernel_profile import KernelProfile


@dataclass(frozen=True)
class ProfileStudy:
    """What `grader profile` reports. `notes` say what was sampled and what could not be measured."""

    submission: str
    test: str
    shape: tuple[int | float, ...]
    device: str
    gpu_ms: float | None
    metrics: tuple[Metric, ...]
    kernels: tuple[KernelProfile, ...]
    notes: tuple[str, ...]
