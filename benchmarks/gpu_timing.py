"""GPU time of work that a process launches on PyTorch's current stream."""

from __future__ import annotations

from collections.abc import Callable

import torch


def timed_ms(work: Callable[[], object]) -> float:
    """Milliseconds between CUDA events before and after `work`."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end))
