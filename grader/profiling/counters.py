"""The emulator's counters, under Nsight Compute's names.

The emulator runs PTX; a GPU runs the instructions that the assembler makes of it. Requests, sectors, wavefronts and
bank conflicts depend on the addresses alone, so they are comparable. Instruction counts differ, because the assembler
adds and removes instructions (docs/counters.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from grader.course.metrics import EMULATOR, METRICS
from grader.profiling.ncu import Launch
from grader.programs.trace import Trace

_SECTOR_BYTES = 32
_WAVEFRONT_BYTES = 128

_SHARED = ("shared_load", "shared_store")
_RATIOS = {
    "warp_execution_efficiency": (("thread_instructions",), ("instructions",), 1.0),
    "warp_nonpred_execution_efficiency": (("thread_instructions_pred_on",), ("instructions",), 1.0),
    "gld_sectors_per_request": (METRICS["gld_transactions"].counted, METRICS["gld_requests"].counted, 1.0),
    "gst_sectors_per_request": (("global_store_sectors",), ("global_store_requests",), 1.0),
    "gld_efficiency": (
        ("global_load_bytes", "global_async_copy_bytes"),
        METRICS["gld_transactions"].counted,
        100 / _SECTOR_BYTES,
    ),
    "gst_efficiency": (("global_store_bytes",), ("global_store_sectors",), 100 / _SECTOR_BYTES),
    "shared_efficiency": (
        tuple(f"{name}_bytes" for name in _SHARED),
        tuple(f"{name}_wavefronts" for name in _SHARED),
        100 / _WAVEFRONT_BYTES,
    ),
}
"""Metric → counters in the numerator, counters in the denominator, and a factor. A metric with denominator 0 is left
out."""


def counted_launches(trace: Trace) -> tuple[Launch, ...]:
    """The launches of a program that was built to count, with their counters under ncu's names; otherwise none."""
    counted = (kernel for kernel in trace.kernels if kernel.counters)
    return tuple(Launch(kernel.name, kernel.grid, kernel.block, _values(kernel.counters)) for kernel in counted)


def _values(counters: Mapping[str, float]) -> dict[str, float]:
    values = {metric.ncu: _sum(counters, metric.counted) for metric in METRICS.values() if metric.counted}
    for name, (above, below, factor) in _RATIOS.items():
        divisor = _sum(counters, below)
        if divisor:
            values[METRICS[name].ncu] = factor * _sum(counters, above) / divisor
    branches = counters.get("branches", 0)
    if branches:
        values[METRICS["branch_efficiency"].ncu] = 100 * (1 - counters.get("divergent_branches", 0) / branches)
    values |= {f"{EMULATOR}{name}": value for name, value in counters.items() if name.startswith("warp_")}
    return values


def _sum(counters: Mapping[str, float], names: tuple[str, ...]) -> float:
    return sum(counters.get(name, 0.0) for name in names)


def instruction_mix(trace: Trace, kernel: str) -> dict[str, float]:
    """The kernel's warp instructions by class, as shares (0..1) of all, the largest first; empty if nothing was
    counted."""
    sums: dict[str, float] = {}
    for event in trace.kernels:
        if event.name == kernel:
            for name, value in event.counters.items():
                if name.startswith("warp_") and value:
                    word = name.removeprefix("warp_")
                    sums[word] = sums.get(word, 0.0) + value
    total = sum(sums.values())
    return {word: value / total for word, value in sorted(sums.items(), key=lambda item: -item[1])}
