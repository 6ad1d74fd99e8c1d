"""Metrics of `grader profile`: nvprof's names, which students know, next to Nsight Compute's.

The pairs are those of the Nsight Compute CLI documentation, "nvprof Metric Comparison". Where nvprof gave bytes and
ncu gives wavefronts (one pass through shared memory's 32 banks of 4 bytes), a wavefront is counted as 128 bytes:
the bandwidth it takes up, whether its bytes are used or not.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.base.errors import UsageError


@dataclass(frozen=True)
class Metric:
    """One number of a launch: `ncu`'s value times `scale`, in `unit`. Names of metrics that only the emulator counts
    begin with emulator__."""

    name: str
    ncu: str
    unit: str
    meaning: str
    scale: float = 1.0

    @property
    def in_ncu(self) -> str:
        """Its name in Nsight Compute; empty where there is none."""
        return "" if self.ncu.startswith(EMULATOR) else self.ncu

    def value(self, values: Mapping[str, float]) -> float | None:
        """From all ncu values of a launch; None where ncu did not measure it."""
        found = values.get(self.ncu)
        return None if found is None else found * self.scale


EMULATOR = "emulator__"

_GIGA = 1e-9
_WAVEFRONT_BYTES = 128
_SHARED = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_"
_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_"
_GLOBAL = "l1tex__t_bytes_pipe_lsu_mem_global_op_"

_ALL = (
    Metric(
        "achieved_occupancy",
        "sm__warps_active.avg.pct_of_peak_sustained_active",
        "",
        "warps an SM held on average while it worked, of the most it can hold",
        0.01,
    ),
    Metric(
        "sm_efficiency",
        "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed",
        "%",
        "share of the kernel's time in which an SM had a warp",
    ),
    Metric(
        "shared_load_throughput",
        f"{_SHARED}ld.sum.per_second",
        "GB/s",
        "shared memory reads, 128 bytes a wavefront",
        _WAVEFRONT_BYTES * _GIGA,
    ),
    Metric(
        "shared_store_throughput",
        f"{_SHARED}st.sum.per_second",
        "GB/s",
        "shared memory writes, 128 bytes a wavefront",
        _WAVEFRONT_BYTES * _GIGA,
    ),
    Metric("gld_throughput", f"{_GLOBAL}ld.sum.per_second", "GB/s", "global loads, as the L1 cache serves them", _GIGA),
    Metric("gst_throughput", f"{_GLOBAL}st.sum.per_second", "GB/s", "global stores, as the L1 cache takes them", _GIGA),
    Metric("shared_load_wavefronts", f"{_SHARED}ld.sum", "", "passes through shared memory's banks for loads"),
    Metric("shared_load_bank_conflicts", f"{_CONFLICTS}ld.sum", "", "passes more than the loads needed"),
    Metric("shared_store_bank_conflicts", f"{_CONFLICTS}st.sum", "", "passes more than the stores needed"),
    Metric(
        "shared_bank_conflicts",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "",
        "passes more than loads, stores and atomics needed",
    ),
    Metric(
        "gld_sectors_per_request",
        f"{_SECTORS}ld.ratio",
        "",
        "32-byte sectors a warp's load touches: 4 is a perfect load of 4 bytes a lane, 32 the worst",
    ),
    Metric("gst_sectors_per_request", f"{_SECTORS}st.ratio", "", "the same of a warp's store"),
    Metric("dram_throughput", "dram__bytes.sum.per_second", "GB/s", "device memory reads and writes", _GIGA),
    Metric(
        "dram_utilization",
        "dram__throughput.avg.pct_of_peak_sustained_elapsed",
        "%",
        "of what device memory can carry",
    ),
    Metric(
        "tensor_use",
        "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
        "%",
        "of the tensor cores' cycles",
    ),
)

_INST = "smsp__sass_thread_inst_executed_op_"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_"
_SECTOR_SUM = "l1tex__t_sectors_pipe_lsu_mem_"
_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_"

_COUNTED = (
    Metric("inst_executed", "smsp__inst_executed.sum", "", "instructions of warps"),
    Metric(
        "warp_execution_efficiency",
        "smsp__thread_inst_executed_per_inst_executed.ratio",
        "%",
        "lanes that are active, on average over all instructions",
        100 / 32,
    ),
    Metric(
        "warp_nonpred_execution_efficiency",
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        "%",
        "the same without lanes that a predicate turns off",
        100 / 32,
    ),
    Metric("thread_inst_executed", "smsp__thread_inst_executed.sum", "", "instructions of threads"),
    Metric("inst_integer", f"{_INST}integer_pred_on.sum", "", "integer instructions of threads"),
    Metric("inst_fp_32", f"{_INST}fp32_pred_on.sum", "", "single-precision instructions of threads"),
    Metric("inst_fp_64", f"{_INST}fp64_pred_on.sum", "", "double-precision instructions of threads"),
    Metric("inst_fp_16", f"{_INST}fp16_pred_on.sum", "", "half-precision instructions of threads"),
    Metric("inst_bit_convert", f"{_INST}conversion_pred_on.sum", "", "conversions of threads"),
    Metric("inst_compute_ld_st", f"{_INST}memory_pred_on.sum", "", "loads, stores and atomics of threads"),
    Metric("inst_control", f"{_INST}control_pred_on.sum", "", "branches, calls and returns of threads"),
    Metric(
        "inst_inter_thread_communication",
        f"{_INST}inter_thread_communication_pred_on.sum",
        "",
        "shuffles and votes of threads",
    ),
    Metric("inst_misc", f"{_INST}misc_pred_on.sum", "", "moves, selects and fences of threads"),
    Metric("inst_tensor", f"{EMULATOR}warp_tensor.sum", "", "matrix instructions of warps"),
    Metric("barriers", f"{EMULATOR}warp_barrier.sum", "", "__syncthreads and the like, of warps"),
    Metric("branch", "smsp__sass_branch_targets.sum", "", "conditional branches of warps"),
    Metric(
        "divergent_branch", "smsp__sass_branch_targets_threads_divergent.sum", "", "branches at which lanes diverged"
    ),
    Metric(
        "branch_efficiency",
        "smsp__sass_average_branch_targets_threads_uniform.pct",
        "%",
        "branches at which all lanes went the same way",
    ),
    Metric("gld_requests", f"{_REQUESTS}global_op_ld.sum", "", "global loads of warps"),
    Metric("gld_transactions", f"{_SECTOR_SUM}global_op_ld.sum", "", "32-byte sectors they touched"),
    Metric("gld_efficiency", f"{_PER_SECTOR}ld.pct", "%", "bytes asked for, of those in the sectors touched"),
    Metric("gst_requests", f"{_REQUESTS}global_op_st.sum", "", "global stores of warps"),
    Metric("gst_transactions", f"{_SECTOR_SUM}global_op_st.sum", "", "32-byte sectors they touched"),
    Metric("gst_efficiency", f"{_PER_SECTOR}st.pct", "%", "bytes stored, of those in the sectors touched"),
    Metric("async_copy_requests", f"{EMULATOR}global_async_copy_requests.sum", "", "cp.async of warps"),
    Metric("async_copy_sectors", f"{EMULATOR}global_async_copy_sectors.sum", "", "32-byte sectors they read"),
    Metric("local_load_requests", f"{_REQUESTS}local_op_ld.sum", "", "loads of warps from local arrays"),
    Metric("local_load_transactions", f"{_SECTOR_SUM}local_op_ld.sum", "", "32-byte sectors they touched"),
    Metric("local_store_requests", f"{_REQUESTS}local_op_st.sum", "", "stores of warps to local arrays"),
    Metric("local_store_transactions", f"{_SECTOR_SUM}local_op_st.sum", "", "32-byte sectors they touched"),
    Metric("shared_load_requests", "smsp__inst_executed_op_shared_ld.sum", "", "shared memory loads of warps"),
    Metric("shared_store_requests", "smsp__inst_executed_op_shared_st.sum", "", "shared memory stores of warps"),
    Metric("shared_store_wavefronts", f"{_SHARED}st.sum", "", "passes through shared memory's banks for stores"),
    Metric(
        "shared_efficiency",
        "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
        "%",
        "bytes asked for, of 128 in each pass",
    ),
    Metric(
        "inst_executed_global_atomics",
        "smsp__inst_executed_op_global_atom.sum",
        "",
        "atomics of warps on global memory whose old value is used",
    ),
    Metric(
        "inst_executed_global_reductions",
        "smsp__inst_executed_op_global_red.sum",
        "",
        "atomics of warps on global memory whose old value is not used",
    ),
    Metric(
        "inst_executed_shared_atomics",
        "smsp__inst_executed_op_shared_atom.sum",
        "",
        "atomics of warps on shared memory",
    ),
    Metric("flop_count_sp_add", f"{_INST}fadd_pred_on.sum", "", "single-precision additions"),
    Metric("flop_count_sp_mul", f"{_INST}fmul_pred_on.sum", "", "single-precision multiplications"),
    Metric("flop_count_sp_fma", f"{_INST}ffma_pred_on.sum", "", "single-precision multiply-adds, each counted once"),
    Metric("flop_count_sp", f"{EMULATOR}flop_sp.sum", "", "single-precision operations, a multiply-add being two"),
    Metric("flop_count_dp", f"{EMULATOR}flop_dp.sum", "", "double-precision operations, a multiply-add being two"),
    Metric("flop_count_hp", f"{EMULATOR}flop_hp.sum", "", "half-precision operations, a multiply-add being two"),
    Metric("flop_count_tensor", f"{EMULATOR}flop_tensor.sum", "", "operations of matrix instructions"),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_ALL, *_COUNTED)}

_AFTER = {
    "gld_transactions": ("gld_sectors_per_request",),
    "gst_transactions": ("gst_sectors_per_request",),
    "shared_load_requests": ("shared_load_wavefronts", "shared_load_bank_conflicts"),
    "shared_store_wavefronts": ("shared_store_bank_conflicts",),
}
COUNTED: tuple[str, ...] = tuple(name for metric in _COUNTED for name in (metric.name, *_AFTER.get(metric.name, ())))
"""What the emulator counts: properties of the program and its input, which need no clock."""

DURATION = "gpu__time_duration.sum"
OCCUPANCY = METRICS["achieved_occupancy"].ncu
READ_BYTES = "l1tex__m_xbar2l1tex_read_bytes.sum"
"""Bytes that came to the SMs from the second-level cache, by loads, asynchronous copies and the bulk copy engine
alike: 0 for a kernel that reads no global memory."""

FLOPS = {
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 2,
}
"""FP32 instructions of all threads and the operations each counts as. Tensor cores are not in these."""

DRAM_BYTES = "dram__bytes.sum"

_STALL = "smsp__average_warps_issue_stalled_"
_STALL_END = "_per_issue_active.ratio"
STALLS = f"regex:{_STALL}.*{_STALL_END.replace('.', '[.]')}"

_STALL_MEANINGS = {
    "long_scoreboard": "waiting for global or local memory",
    "short_scoreboard": "waiting for shared memory or a special function",
    "barrier": "waiting at __syncthreads",
    "mio_throttle": "the queue for shared memory and special functions is full",
    "lg_throttle": "the queue for global memory is full",
    "math_pipe_throttle": "the arithmetic units are busy",
    "wait": "a fixed delay between dependent instructions",
    "not_selected": "ready, but another warp was chosen",
    "selected": "issuing",
    "dispatch_stall": "the dispatcher held it back",
    "no_instruction": "waiting for instructions to be fetched",
    "branch_resolving": "waiting for a branch",
    "drain": "waiting at the end for stores to leave",
    "membar": "waiting at a memory fence",
    "imc_miss": "waiting for a constant",
    "gmma": "waiting for the tensor cores",
    "tex_throttle": "the queue for textures is full",
    "sleeping": "asleep",
}
_NO_STALL = frozenset({"selected", "not_selected"})


def stall_reasons(values: Mapping[str, float]) -> list[tuple[str, str, float]]:
    """(ncu's word, what it means, warps in that state per instruction issued) of a launch, the largest first. Warps
    that issue or could issue are left out."""
    found = []
    for name, value in values.items():
        if name.startswith(_STALL) and name.endswith(_STALL_END):
            word = name[len(_STALL) : -len(_STALL_END)]
            if word not in _NO_STALL and value > 0:
                found.append((word, _STALL_MEANINGS.get(word, word.replace("_", " ")), value))
    return sorted(found, key=lambda reason: -reason[2])


def named_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """The metrics called `names`. Raises UsageError for one that is not known, with the closest."""
    for name in names:
        if name not in METRICS:
            close = difflib.get_close_matches(name, METRICS, n=1)
            hint = f" Did you mean {close[0]}?" if close else ""
            raise UsageError(f"metrics: there is no metric {name!r}; known: {', '.join(METRICS)}.{hint}")
    return tuple(METRICS[name] for name in names)
