"""What `grader profile` can show: the names students know from nvprof, and Nsight Compute's beside them.

The pairs are those of the Nsight Compute CLI documentation, "nvprof Metric Comparison". Where nvprof gave bytes and
ncu gives wavefronts (one pass through shared memory's 32 banks of 4 bytes), a wavefront is counted as 128 bytes:
the bandwidth it takes up, whether its bytes are used or not.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grader.errors import UsageError


@dataclass(frozen=True)
class Metric:
    """One number of a launch: `ncu`'s value times `scale`, in `unit`."""

    name: str
    ncu: str
    unit: str
    meaning: str
    scale: float = 1.0

    def value(self, values: Mapping[str, float]) -> float | None:
        """From all ncu values of a launch; None where ncu did not measure it."""
        found = values.get(self.ncu)
        return None if found is None else found * self.scale


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

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}

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
