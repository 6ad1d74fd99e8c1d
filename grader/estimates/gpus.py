"""Facts about GPUs: sizes, rates and latencies. gpus.json has each with its source."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from grader.gpu.facts import known_limits


@dataclass(frozen=True)
class Gpu:
    """`target` is what ptxas compiles for. Rates are results per cycle and SM, `l2_per_sm` bytes per cycle when all SMs
    read, latencies cycles. `calibrated`: whether times measured here say how far predictions are off."""

    name: str
    title: str
    target: str
    capability: tuple[int, int]
    calibrated: bool
    note: str
    sms: int
    clock_ghz: float
    l1_bytes: int
    l2_bytes: int
    dram_gb_per_s: float
    fp32: int
    fp64: int
    tensor_fp16: int
    shared_latency: float
    l1_latency: float
    l2_latency: float
    dram_latency: float
    l2_per_sm: float


_TABLE = json.loads(Path(__file__).with_name("gpus.json").read_text(encoding="utf-8"))
ALL: dict[str, float] = {fact: value for fact, (value, _) in _TABLE["all"].items()}
"""Facts and measured constants that are taken to be the same for all GPUs."""
GPUS = {
    name: Gpu(name, capability=(major, minor), **gpu, **{fact: value for fact, (value, _) in facts.items()})
    for name, (major, minor), gpu, facts in _TABLE["gpus"]
}
LIMITS = {gpu.name: limits for gpu in GPUS.values() if (limits := known_limits(gpu.capability))}
