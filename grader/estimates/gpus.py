"""Facts about GPUs: sizes, rates and latencies, each with its source.

Sizes, clocks and bandwidths are from NVIDIA's data sheets and architecture white papers. Results per cycle and SM are
from the CUDA C++ Programming Guide 13.0, "Arithmetic Instructions". Latencies in cycles:

    h100, h200   Luo et al., "Dissecting the NVIDIA Hopper Architecture through Microbenchmarking and Multiple Level
                 Analysis", 2025 (also a100 and rtx4090)
    v100, t4     Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018, and "Dissecting
                 the NVidia Turing T4 GPU via Microbenchmarking", 2019

Nobody has compared the numbers below with these sources line by line yet.

`clock_ghz` is the highest clock; an H100 and an H200 kept it in all measurements (nvidia-smi, five times a second).
`l1_returned` and `l1_tags` were measured on an H100 (docs/estimates.md): a load of 4 bytes for all lanes of a warp
takes 2.5 cycles of an SM and one of 16 bytes 9.2 where all lanes read the same address (style2, read-only data), one of
32 different lines 32 cycles (style7).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gpu:
    """`target` is what ptxas compiles for. Bandwidths are in bytes per cycle (L2, per SM, all reading) and in GB/s.
    `calibrated`: whether times measured here say how far predictions are off."""

    name: str
    title: str
    target: str
    capability: tuple[int, int]
    sms: int
    clock_ghz: float
    l1_bytes: int
    l2_bytes: int
    dram_gb_per_s: float
    fp32: int = 128
    fp64: int = 64
    int32: int = 64
    xu: int = 16
    tensor_fp16: int = 1024
    shared_latency: float = 29.0
    l1_latency: float = 40.0
    l2_latency: float = 263.0
    dram_latency: float = 480.0
    l2_per_sm: float = 44.0
    l1_returned: float = 56.0
    l1_tags: float = 1.0
    calibrated: bool = False
    note: str = ""


_K, _M = 1 << 10, 1 << 20
_Facts = dict[str, Any]
_AMPERE: _Facts = {"fp32": 64, "fp64": 32, "l2_latency": 261.0, "dram_latency": 466.0}
_ADA: _Facts = {"fp64": 2, "tensor_fp16": 512, "l1_latency": 43.0, "l2_latency": 273.0, "dram_latency": 541.0}
_SMALL: _Facts = {"fp32": 64, "tensor_fp16": 512, "shared_latency": 19.0}
_TURING: _Facts = {**_SMALL, "fp64": 2, "l1_latency": 32.0, "l2_latency": 188.0, "dram_latency": 434.0}
_VOLTA: _Facts = {**_SMALL, "fp64": 32, "l1_latency": 28.0, "l2_latency": 193.0, "dram_latency": 400.0}
_NOT_SM_70 = "machine code for sm_75, since CUDA 13 compiles for no older GPU"
GPUS = {
    gpu.name: gpu
    for gpu in (
        Gpu("h100", "H100", "sm_90", (9, 0), 132, 1.98, 256 * _K, 50 * _M, 3350, calibrated=True),
        Gpu("h200", "H200", "sm_90", (9, 0), 132, 1.98, 256 * _K, 50 * _M, 4800, calibrated=True),
        Gpu("a100", "A100", "sm_80", (8, 0), 108, 1.41, 192 * _K, 40 * _M, 1555, **_AMPERE),
        Gpu("l40s", "L40S", "sm_89", (8, 9), 142, 2.52, 128 * _K, 96 * _M, 864, **_ADA),
        Gpu("rtx4090", "RTX 4090", "sm_89", (8, 9), 128, 2.52, 128 * _K, 72 * _M, 1008, **_ADA),
        Gpu("rtx3060", "RTX 3060", "sm_86", (8, 6), 28, 1.777, 128 * _K, 3 * _M, 360, fp64=2, tensor_fp16=512),
        Gpu("t4", "T4", "sm_75", (7, 5), 40, 1.59, 96 * _K, 4 * _M, 320, **_TURING),
        Gpu("v100", "V100", "sm_75", (7, 0), 80, 1.53, 128 * _K, 6 * _M, 900, **_VOLTA, note=_NOT_SM_70),
    )
}  # fmt: skip
