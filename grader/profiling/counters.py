"""What the emulator counted, under Nsight Compute's names.

The emulator runs PTX, a GPU what the assembler makes of it. Requests, sectors, wavefronts and conflicts are of memory
and comparable; instruction counts differ by what the assembler adds and leaves out (docs/counters.md).
"""

from __future__ import annotations

from collections.abc import Mapping

from grader.course.metrics import EMULATOR, METRICS
from grader.profiling.ncu import Launch
from grader.programs.trace import KernelEvent, Trace

_SECTOR_BYTES = 32
_WAVEFRONT_BYTES = 128

_SUMS = {
    "inst_executed": ("instructions",),
    "thread_inst_executed": ("thread_instructions",),
    "inst_integer": ("thread_integer",),
    "inst_fp_32": ("thread_fp32",),
    "inst_fp_64": ("thread_fp64",),
    "inst_fp_16": ("thread_fp16",),
    "inst_bit_convert": ("thread_conversion",),
    "inst_compute_ld_st": ("thread_memory",),
    "inst_control": ("thread_control",),
    "inst_inter_thread_communication": ("thread_inter_thread",),
    "inst_misc": ("thread_misc",),
    "inst_tensor": ("warp_tensor",),
    "barriers": ("warp_barrier",),
    "branch": ("branches",),
    "divergent_branch": ("divergent_branches",),
    "gld_requests": ("global_load_requests", "global_async_copy_requests"),
    "gld_transactions": ("global_load_sectors", "global_async_copy_sectors"),
    "gst_requests": ("global_store_requests",),
    "gst_transactions": ("global_store_sectors",),
    "async_copy_requests": ("global_async_copy_requests",),
    "async_copy_sectors": ("global_async_copy_sectors",),
    "local_load_requests": ("local_load_requests",),
    "local_load_transactions": ("local_load_sectors",),
    "local_store_requests": ("local_store_requests",),
    "local_store_transactions": ("local_store_sectors",),
    "shared_load_requests": ("shared_load_requests",),
    "shared_store_requests": ("shared_store_requests",),
    "shared_load_wavefronts": ("shared_load_wavefronts",),
    "shared_store_wavefronts": ("shared_store_wavefronts",),
    "shared_load_bank_conflicts": ("shared_load_bank_conflicts",),
    "shared_store_bank_conflicts": ("shared_store_bank_conflicts",),
    "inst_executed_global_atomics": ("global_atomic_requests",),
    "inst_executed_global_reductions": ("global_reduction_requests",),
    "inst_executed_shared_atomics": ("shared_atomic_requests", "shared_reduction_requests"),
    "flop_count_sp_add": ("flop_sp_add",),
    "flop_count_sp_mul": ("flop_sp_mul",),
    "flop_count_sp_fma": ("flop_sp_fma",),
    "flop_count_sp": ("flop_sp_add", "flop_sp_mul", "flop_sp_fma", "flop_sp_fma"),
    "flop_count_dp": ("flop_dp_add", "flop_dp_mul", "flop_dp_fma", "flop_dp_fma"),
    "flop_count_hp": ("flop_hp_add", "flop_hp_mul", "flop_hp_fma", "flop_hp_fma"),
    "flop_count_tensor": ("flop_tensor",),
}
"""The emulator's counters that add up to a metric."""

_SHARED = ("shared_load", "shared_store")
_RATIOS = {
    "warp_execution_efficiency": (("thread_instructions",), ("instructions",), 1.0),
    "warp_nonpred_execution_efficiency": (("thread_instructions_pred_on",), ("instructions",), 1.0),
    "gld_sectors_per_request": (_SUMS["gld_transactions"], _SUMS["gld_requests"], 1.0),
    "gst_sectors_per_request": (("global_store_sectors",), ("global_store_requests",), 1.0),
    "gld_efficiency": (
        ("global_load_bytes", "global_async_copy_bytes"),
        _SUMS["gld_transactions"],
        100 / _SECTOR_BYTES,
    ),
    "gst_efficiency": (("global_store_bytes",), ("global_store_sectors",), 100 / _SECTOR_BYTES),
    "shared_efficiency": (
        tuple(f"{name}_bytes" for name in _SHARED),
        tuple(f"{name}_wavefronts" for name in _SHARED),
        100 / _WAVEFRONT_BYTES,
    ),
}
"""Metric → counters above the line, below it, and a factor. Not counted where nothing is below the line."""


def counted_launches(trace: Trace) -> tuple[Launch, ...]:
    """The launches of a program that counted, with ncu's names for what they counted; none of one that did not."""
    return tuple(_launch(kernel) for kernel in trace.kernels if kernel.counters)


def _launch(kernel: KernelEvent) -> Launch:
    return Launch(kernel.name, kernel.grid, kernel.block, _values(kernel.counters))


def _values(counters: Mapping[str, float]) -> dict[str, float]:
    values = {METRICS[name].ncu: _sum(counters, parts) for name, parts in _SUMS.items()}
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
    """The kernel's instructions of warps by class, as shares (0..1) of all, the largest first; empty where nothing
    was counted."""
    sums: dict[str, float] = {}
    for event in trace.kernels:
        if event.name == kernel:
            for name, value in event.counters.items():
                if name.startswith("warp_") and value:
                    word = name.removeprefix("warp_")
                    sums[word] = sums.get(word, 0.0) + value
    total = sum(sums.values())
    return {word: value / total for word, value in sorted(sums.items(), key=lambda item: -item[1])}
