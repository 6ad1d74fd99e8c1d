"""A program's predicted time on a testcase: kernel by kernel, what limits it, and what it would take without that."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field

from grader.estimates.counts import Group
from grader.estimates.gpus import ALL, LIMITS, Gpu
from grader.estimates.machine_code import Code, read_code
from grader.estimates.model import Fix, KernelEstimate, WhatIf, kernel_time, resident_blocks
from grader.sandbox.room import confined

LEAST_GAIN = 0.03  # a fix that saves less of the program's time is not worth advice
MAX_KERNELS = 256
_MOST_LINES, _MISFIT = 2, 0.25
_NOT_MODELLED = ("TLD", "SULD", "SUST", "TEX", "TLD4", "UTCHMMA")
_COSTS = {"shared": "shared-memory bank conflicts", "global": "loads and stores that are not coalesced",
          "local": "local memory"}  # fmt: skip


@confined(cpu_s=120)
def kernel_estimates(
    groups: Sequence[Group], units: Sequence[tuple[IO[bytes], IO[bytes], IO[bytes]]], gpu: Gpu, fixes: bool
) -> Annotated[list[KernelEstimate], Field(max_length=MAX_KERNELS)]:
    """Predict each group's time, with fixes that gain something if `fixes`. `units` has the files of `machine_code`."""
    codes = read_code(units)
    plain = [estimate_of(group, codes, gpu) for group in groups[:MAX_KERNELS]]
    least_ms = LEAST_GAIN * sum(estimate.ms for estimate, _ in plain)
    return [
        replace(estimate, fixes=tuple(fixes_of(group, code, gpu, estimate.ms, least_ms)))
        if fixes and code is not None and not estimate.why and estimate.ms > least_ms
        else estimate
        for group, (estimate, code) in zip(groups, plain, strict=False)
    ]


def predicted(folder: Path, groups: Sequence[Group], gpu: Gpu, *, fixes: bool = True) -> list[KernelEstimate]:
    """`kernel_estimates` with the machine code in `folder`. Raises Unreadable."""
    with ExitStack() as files:
        units = [
            tuple(files.enter_context(sass.with_suffix(end).open("rb")) for end in (".ptx", ".log", ".sass"))
            for sass in sorted(folder.glob("*.sass"))
        ]
        return kernel_estimates(groups, units, gpu, fixes)  # type: ignore[arg-type]


def estimate_of(group: Group, codes: Mapping[str, Sequence[Code]], gpu: Gpu) -> tuple[KernelEstimate, Code | None]:
    """The predicted time of a group's launches, without fixes, and the machine code that was predicted."""
    found = codes.get(group.entry, ())
    lacking = {name for code in found for name in code.names if name in _NOT_MODELLED}
    if lacking or not found:
        why = f"the model lacks {', '.join(sorted(lacking))}" if found else "there is no machine code of this kernel"
        return KernelEstimate(group.kernel[:900], group.launches, why=why), None
    # Kernels that Triton made for other shapes have the same name: the counts fit one of them.
    time, code = min(((kernel_time(group, code, gpu), code) for code in found), key=lambda pair: pair[0].misfit)
    why = f"{time.misfit:.0%} of its counts do not fit the machine code" if time.misfit > _MISFIT else ""
    return replace(time, why=why), code


def unpredictable(kernels: Sequence[KernelEstimate]) -> str:
    """Why the program cannot be predicted; '' if it can: a kernel that takes hardly any time may be wrong."""
    total = sum(kernel.ms for kernel in kernels)
    lacking = [kernel for kernel in kernels if kernel.why and (not kernel.ms or kernel.ms > LEAST_GAIN * total)]
    return f"{lacking[0].name}: {lacking[0].why}" if lacking else ""


def fixes_of(group: Group, code: Code, gpu: Gpu, ms: float, least_ms: float) -> Iterator[Fix]:
    """What would save at least `least_ms`, the most first."""
    found = []
    for space, what in _COSTS.items():
        lost = Counter[tuple[str, int]]()
        for access in (a for a in group.accesses.values() if a.space == space):
            lost[access.file, access.line] += access.units if space == "local" else access.excess
        for (file, line), units in lost.most_common(1 if space == "local" else _MOST_LINES):  # local: as a whole
            if units > 0:
                without = kernel_time(group, code, gpu, WhatIf(mended=(space, file, line))).ms
                found.append(Fix(what, file[:900], line, without))
    narrow = defaultdict[tuple[str, int], list[int]](list)
    for (at, _), access in sorted(group.accesses.items(), key=lambda item: -item[1].requests):
        if access.operation == "load" and access.bytes == 4:
            narrow[access.file, access.line].append(at)
    for (file, line), wide in list(narrow.items())[:_MOST_LINES]:
        without = kernel_time(group, code, gpu, WhatIf(wide=wide)).ms
        found.append(Fix("loads of single words (float4 instead)", file[:900], line, without))
    held = resident_blocks(group, code.registers, gpu)
    if 2 * held * group.warps * 32 <= LIMITS[gpu.name].threads and group.blocks / group.launches >= 2 * held * gpu.sms:
        without = kernel_time(group, code, gpu, WhatIf(resident=2 * held)).ms
        found.append(Fix("low occupancy (twice the blocks on an SM)", "", 0, without))
    if group.warps > 1 and "BAR" in code.names:
        found.append(Fix("waiting at barriers", "", 0, kernel_time(group, code, gpu, WhatIf(barriers=False)).ms))
    if group.launches > 1:
        found.append(Fix("so many launches (one instead)", "", 0, ms - (group.launches - 1) * ALL["launch_ms"]))
    yield from sorted((fix for fix in found if ms - fix.without_ms >= least_ms), key=lambda fix: fix.without_ms)


# ---- intervals ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Interval:
    """A predicted time, and the interval that holds the measured one in 80 % of programs like those measured here."""

    ms: float
    low_ms: float
    high_ms: float


def interval(kernels: Sequence[KernelEstimate], gpu: Gpu, more_ms: float = 0.0) -> Interval:
    """The time of the kernels and of `more_ms` of fills; twice as wide on a GPU that nobody calibrated here."""
    total = sum(kernel.ms for kernel in kernels) + more_ms
    low, middle, high = (
        sum(kernel.ms * math.log(quantiles_of(kernel.limit)[i]) for kernel in kernels) / max(total, 1e-12)
        for i in range(3)
    )
    wide, best = 1.0 if gpu.calibrated else 2.0, total * math.exp(middle)
    return Interval(best, best * math.exp(wide * (low - middle)), best * math.exp(wide * (high - middle)))


@cache
def quantiles_of(limit: str) -> list[float]:
    """The 9.5 %, 50 % and 90.5 % quantiles of measured over predicted time, of kernels with this limit."""
    found: dict[str, list[float]] = json.loads(Path(__file__).with_name("calibration.json").read_text())
    return found.get(limit) or found["any"]
