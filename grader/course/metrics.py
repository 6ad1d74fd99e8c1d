"""Defines the metrics of `grader profile`: nvprof's names, which students know, and those of Nsight Compute.

The pairs of names are from the Nsight Compute CLI documentation, "nvprof Metric Comparison". Where nvprof measured
bytes and ncu measures wavefronts (one pass through shared memory's 32 banks of 4 bytes), a wavefront counts as 128
bytes: it takes up this bandwidth, no matter how many of its bytes are used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.base.errors import UsageError
from grader.base.names import did_you_mean


@dataclass(frozen=True)
class Metric:
    """A metric of a launch: the value of ncu's metric `ncu` times `scale`, in `unit`. `counted` names the emulator's
    counters that add up to it. If only the emulator counts it, `ncu` begins with emulator__."""

    name: str
    ncu: str
    unit: str = ""
    scale: float = 1.0
    counted: tuple[str, ...] = ()

    @property
    def in_ncu(self) -> str:
        """The name in Nsight Compute; empty if it has no such metric."""
        return "" if self.ncu.startswith(EMULATOR) else self.ncu

    def value(self, values: Mapping[str, float]) -> float | None:
        """The metric's value, from all ncu values of a launch; None if ncu did not measure it."""
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
    Metric("achieved_occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", scale=0.01),
    Metric("sm_efficiency", "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed", "%"),
    Metric("shared_load_throughput", f"{_SHARED}ld.sum.per_second", "GB/s", _WAVEFRONT_BYTES * _GIGA),
    Metric("shared_store_throughput", f"{_SHARED}st.sum.per_second", "GB/s", _WAVEFRONT_BYTES * _GIGA),
    Metric("gld_throughput", f"{_GLOBAL}ld.sum.per_second", "GB/s", _GIGA),
    Metric("gst_throughput", f"{_GLOBAL}st.sum.per_second", "GB/s", _GIGA),
    Metric("shared_load_wavefronts", f"{_SHARED}ld.sum", counted=("shared_load_wavefronts",)),
    Metric("shared_load_bank_conflicts", f"{_CONFLICTS}ld.sum", counted=("shared_load_bank_conflicts",)),
    Metric("shared_store_bank_conflicts", f"{_CONFLICTS}st.sum", counted=("shared_store_bank_conflicts",)),
    Metric("shared_bank_conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    Metric("gld_sectors_per_request", f"{_SECTORS}ld.ratio"),
    Metric("gst_sectors_per_request", f"{_SECTORS}st.ratio"),
    Metric("dram_throughput", "dram__bytes.sum.per_second", "GB/s", _GIGA),
    Metric("dram_utilization", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%"),
    Metric("tensor_use", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%"),
)

_INST = "smsp__sass_thread_inst_executed_op_"
_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_"
_SECTOR_SUM = "l1tex__t_sectors_pipe_lsu_mem_"
_PER_SECTOR = "smsp__sass_average_data_bytes_per_sector_mem_global_op_"

_COUNTED = (
    Metric("inst_executed", "smsp__inst_executed.sum", counted=("instructions",)),
    Metric("warp_execution_efficiency", "smsp__thread_inst_executed_per_inst_executed.ratio", "%", 100 / 32),
    Metric(
        "warp_nonpred_execution_efficiency", "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", "%", 100 / 32
    ),
    Metric("thread_inst_executed", "smsp__thread_inst_executed.sum", counted=("thread_instructions",)),
    Metric("inst_integer", f"{_INST}integer_pred_on.sum", counted=("thread_integer",)),
    Metric("inst_fp_32", f"{_INST}fp32_pred_on.sum", counted=("thread_fp32",)),
    Metric("inst_fp_64", f"{_INST}fp64_pred_on.sum", counted=("thread_fp64",)),
    Metric("inst_fp_16", f"{_INST}fp16_pred_on.sum", counted=("thread_fp16",)),
    Metric("inst_bit_convert", f"{_INST}conversion_pred_on.sum", counted=("thread_conversion",)),
    Metric("inst_compute_ld_st", f"{_INST}memory_pred_on.sum", counted=("thread_memory",)),
    Metric("inst_control", f"{_INST}control_pred_on.sum", counted=("thread_control",)),
    Metric(
        "inst_inter_thread_communication",
        f"{_INST}inter_thread_communication_pred_on.sum",
        counted=("thread_inter_thread",),
    ),
    Metric("inst_misc", f"{_INST}misc_pred_on.sum", counted=("thread_misc",)),
    Metric("inst_tensor", f"{EMULATOR}warp_tensor.sum", counted=("warp_tensor",)),
    Metric("barriers", f"{EMULATOR}warp_barrier.sum", counted=("warp_barrier",)),
    Metric("branch", "smsp__sass_branch_targets.sum", counted=("branches",)),
    Metric("divergent_branch", "smsp__sass_branch_targets_threads_divergent.sum", counted=("divergent_branches",)),
    Metric("branch_efficiency", "smsp__sass_average_branch_targets_threads_uniform.pct", "%"),
    Metric(
        "gld_requests", f"{_REQUESTS}global_op_ld.sum", counted=("global_load_requests", "global_async_copy_requests")
    ),
    Metric(
        "gld_transactions",
        f"{_SECTOR_SUM}global_op_ld.sum",
        counted=("global_load_sectors", "global_async_copy_sectors"),
    ),
    Metric("gld_efficiency", f"{_PER_SECTOR}ld.pct", "%"),
    Metric("gst_requests", f"{_REQUESTS}global_op_st.sum", counted=("global_store_requests",)),
    Metric("gst_transactions", f"{_SECTOR_SUM}global_op_st.sum", counted=("global_store_sectors",)),
    Metric("gst_efficiency", f"{_PER_SECTOR}st.pct", "%"),
    Metric("async_copy_requests", f"{EMULATOR}global_async_copy_requests.sum", counted=("global_async_copy_requests",)),
    Metric("async_copy_sectors", f"{EMULATOR}global_async_copy_sectors.sum", counted=("global_async_copy_sectors",)),
    Metric("local_load_requests", f"{_REQUESTS}local_op_ld.sum", counted=("local_load_requests",)),
    Metric("local_load_transactions", f"{_SECTOR_SUM}local_op_ld.sum", counted=("local_load_sectors",)),
    Metric("local_store_requests", f"{_REQUESTS}local_op_st.sum", counted=("local_store_requests",)),
    Metric("local_store_transactions", f"{_SECTOR_SUM}local_op_st.sum", counted=("local_store_sectors",)),
    Metric("shared_load_requests", "smsp__inst_executed_op_shared_ld.sum", counted=("shared_load_requests",)),
    Metric("shared_store_requests", "smsp__inst_executed_op_shared_st.sum", counted=("shared_store_requests",)),
    Metric("shared_store_wavefronts", f"{_SHARED}st.sum", counted=("shared_store_wavefronts",)),
    Metric("shared_efficiency", "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", "%"),
    Metric(
        "inst_executed_global_atomics", "smsp__inst_executed_op_global_atom.sum", counted=("global_atomic_requests",)
    ),
    Metric(
        "inst_executed_global_reductions",
        "smsp__inst_executed_op_global_red.sum",
        counted=("global_reduction_requests",),
    ),
    Metric(
        "inst_executed_shared_atomics",
        "smsp__inst_executed_op_shared_atom.sum",
        counted=("shared_atomic_requests", "shared_reduction_requests"),
    ),
    Metric("flop_count_sp_add", f"{_INST}fadd_pred_on.sum", counted=("flop_sp_add",)),
    Metric("flop_count_sp_mul", f"{_INST}fmul_pred_on.sum", counted=("flop_sp_mul",)),
    Metric("flop_count_sp_fma", f"{_INST}ffma_pred_on.sum", counted=("flop_sp_fma",)),
    Metric(
        "flop_count_sp", f"{EMULATOR}flop_sp.sum", counted=("flop_sp_add", "flop_sp_mul", "flop_sp_fma", "flop_sp_fma")
    ),
    Metric(
        "flop_count_dp", f"{EMULATOR}flop_dp.sum", counted=("flop_dp_add", "flop_dp_mul", "flop_dp_fma", "flop_dp_fma")
    ),
    Metric(
        "flop_count_hp", f"{EMULATOR}flop_hp.sum", counted=("flop_hp_add", "flop_hp_mul", "flop_hp_fma", "flop_hp_fma")
    ),
    Metric("flop_count_tensor", f"{EMULATOR}flop_tensor.sum", counted=("flop_tensor",)),
    Metric("inst_wgmma", "smsp__inst_executed_pipe_tensor_op_gmma.sum", counted=("wgmma",)),
    Metric("inst_wgmma_from_registers", f"{EMULATOR}wgmma_from_registers.sum", counted=("wgmma_from_registers",)),
    Metric("bulk_load_bytes", f"{EMULATOR}bulk_load_bytes.sum", "B", counted=("bulk_load_bytes",)),
    Metric("bulk_store_bytes", f"{EMULATOR}bulk_store_bytes.sum", "B", counted=("bulk_store_bytes",)),
    Metric("bulk_multicast_bytes", f"{EMULATOR}bulk_multicast_bytes.sum", "B", counted=("bulk_multicast_bytes",)),
    Metric("bulk_stages", f"{EMULATOR}bulk_stages.max", counted=("bulk_stages",)),
    Metric("barrier_object_waits", f"{EMULATOR}barrier_object_waits.sum", counted=("barrier_object_waits",)),
    Metric("cluster_blocks", f"{EMULATOR}cluster_blocks.max", counted=("cluster_blocks",)),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in (*_ALL, *_COUNTED)}

_AFTER = {
    "gld_transactions": ("gld_sectors_per_request",),
    "gst_transactions": ("gst_sectors_per_request",),
    "shared_load_requests": ("shared_load_wavefronts", "shared_load_bank_conflicts"),
    "shared_store_wavefronts": ("shared_store_bank_conflicts",),
}
COUNTED: tuple[str, ...] = tuple(name for metric in _COUNTED for name in (metric.name, *_AFTER.get(metric.name, ())))
"""The metrics that the emulator counts: properties of the program and its input, which need no clock."""

DURATION = "gpu__time_duration.sum"
OCCUPANCY = METRICS["achieved_occupancy"].ncu
READ_BYTES = "l1tex__m_xbar2l1tex_read_bytes.sum"
"""The bytes that loads, asynchronous copies and the bulk copy engine brought from the second-level cache to the SMs: 0
for a kernel that reads no global memory."""

FLOPS = {
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum": 1,
    "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": 2,
}
"""The FP32 instructions of all threads, without tensor cores, and the number of operations of each."""

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
    """(ncu's name, its meaning, warps in that state per issued instruction) for each stall of a launch, the largest
    first. Warps that issue or could issue are left out."""
    found = []
    for name, value in values.items():
        if name.startswith(_STALL) and name.endswith(_STALL_END):
            word = name[len(_STALL) : -len(_STALL_END)]
            if word not in _NO_STALL and value > 0:
                found.append((word, _STALL_MEANINGS.get(word, word.replace("_", " ")), value))
    return sorted(found, key=lambda reason: -reason[2])


def named_metrics(names: Sequence[str]) -> tuple[Metric, ...]:
    """The metrics called `names`. Raises UsageError for an unknown name, with the closest known name."""
    for name in names:
        if name not in METRICS:
            hint = did_you_mean(name, METRICS)
            raise UsageError(f"metrics: there is no metric {name!r}; known: {', '.join(METRICS)}.{hint}")
    return tuple(METRICS[name] for name in names)
