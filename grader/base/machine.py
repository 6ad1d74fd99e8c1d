"""Facts about the machine, for records."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def cpu_features() -> str:
    """The processor's architecture, name and features, on which a program built with -march=native depends."""
    return f"{platform.machine()} {cpu_model()} {_cpuinfo('flags', 'Features')}"


@cache
def cpu_model() -> str:
    """The processor's name as in /proc/cpuinfo."""
    return _cpuinfo("model name", "Model") or platform.processor() or platform.machine()


def _cpuinfo(*names: str) -> str:
    """The first value in /proc/cpuinfo with one of these names; '' if there is none."""
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(names)), "")
