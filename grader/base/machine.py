"""Facts about the machine, for records."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def cpu_features() -> str:
    """The processor and its features from /proc/cpuinfo, which code for -march=native may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return f"{platform.machine()} {cpu_model()} {features.partition(':')[2].strip()}"


@cache
def cpu_model() -> str:
    """The processor's name as in /proc/cpuinfo."""
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
