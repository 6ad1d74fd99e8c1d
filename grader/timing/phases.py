"""GPU time by phase, such as the first and the second pass of a program. A kernel's name decides its phase.

The rule: a kernel belongs to the first phase of assignment.yaml whose regular expression matches a part of its name,
regardless of case. A phase's time is the length of the union of its kernels' intervals, because kernels of different
streams overlap. So phases that overlap sum to more than the whole. Kernels of no phase, and memsets, are `other`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from grader.course.assignment import Phase
from grader.programs.trace import Trace
from grader.programs.trace.events import KernelEvent, times_of, union_ns

OTHER = "other"


def phase_times(trace: Trace, phases: Sequence[Phase]) -> dict[str, float | None]:
    """Milliseconds by phase, in the assignment's order; None for a phase without kernels. `other` is included only if
    it has kernels or memsets. Empty if the assignment has no phases."""
    if not phases:
        return {}
    patterns = [(phase.name, re.compile(phase.kernels, re.IGNORECASE)) for phase in phases]
    kernels: dict[str | None, list[KernelEvent]] = {name: [] for name in (*(name for name, _ in patterns), None)}
    for kernel in trace.kernels:
        kernels[next((name for name, pattern in patterns if pattern.search(kernel.name)), None)].append(kernel)
    others = times_of(trace.memsets, kernels.pop(None))
    times: dict[str, float | None] = {
        str(name): union_ns(times_of((), each)) / 1e6 if each else None for name, each in kernels.items()
    }
    return times | ({OTHER: union_ns(others) / 1e6} if len(others) else {})
