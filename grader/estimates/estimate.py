"""A program's predicted time on a testcase: kernel by kernel, what limits it, and what it would take without that."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field

from grader.base.sizes import Count
from grader.estimates.counts import Access, Group
from grader.estimates.gpus import Gpu
from grader.estimates.machine_code import Code, read_code
from grader.estimates.model import LAUNCH_MS, Change, kernel_time, resident_blocks
from grader.estimates.pipes import Traffic
from grader.gpu.facts import known_limits
from grader.sandbox.room import Sentence, confined

LEAST_GAIN = 0.03
"""A fix that saves less of the program's time is not worth advice."""
MAX_KERNELS = 256
_MOST_LINES = 2
_MISFIT = 0.25
_NOT_MODELLED = ("TLD", "SULD", "SUST", "TEX", "TLD4", "HGMMA", "QGMMA", "IGMMA", "UTMALDG", "UBLKCP", "UTMASTG",
                 "UTCHMMA")  # fmt: skip


@dataclass(frozen=True)
class Fix:
    """Something to mend, at `file`:`line` (0: the whole kernel), and what the kernel would take then."""

    what: Sentence
    file: Sentence
    line: Count
    without_ms: float


@dataclass(frozen=True)
class KernelEstimate:
    """The predicted time of a kernel's launches. `limit` is what it waits for, busy for the share `busy` (0..1) of its
    time, most of it at `file`:`line` if that is known. `occupancy`: of an SM's warps. `why`: not predictable."""

    name: Sentence
    launches: float
    ms: float
    limit: Sentence
    busy: float
    file: Sentence
    line: Count
    occupancy: float
    fixes: Annotated[tuple[Fix, ...], Field(max_length=16)]
    why: Sentence = ""


@confined(cpu_s=120)
def kernel_estimates(
    groups: Sequence[Group], units: Sequence[tuple[IO[bytes], IO[bytes], IO[bytes]]], gpu: Gpu, fixes: bool
) -> Annotated[list[KernelEstimate], Field(max_length=MAX_KERNELS)]:
    """Predict each group's time, with fixes that gain something if `fixes`. `units` has the files of `machine_code`."""
    codes: dict[str, Code] = {}
    for ptx, log, sass in units:
        codes.update(read_code(ptx, log, sass))
    plain = [estimate_of(group, codes, gpu) for group in groups[:MAX_KERNELS]]
    total = sum(estimate.ms for estimate in plain)
    return [
        replace(estimate, fixes=tuple(_fixes(group, codes[group.entry], gpu, estimate.ms, LEAST_GAIN * total)))
        if fixes and not estimate.why and estimate.ms > LEAST_GAIN * total
        else estimate
        for group, estimate in zip(groups, plain, strict=False)
    ]


def predicted(folder: Path, groups: Sequence[Group], gpu: Gpu, *, fixes: bool = True) -> list[KernelEstimate]:
    """`kernel_estimates` with the machine code in `folder`. Raises Unreadable."""
    with ExitStack() as files:
        count = len(list(folder.glob("*.sass")))
        units = [
            tuple(files.enter_context((folder / f"{i}.{kind}").open("rb")) for kind in ("ptx", "log", "sass"))
            for i in range(count)
        ]
        return kernel_estimates(groups, units, gpu, fixes)  # type: ignore[arg-type]


def estimate_of(group: Group, codes: Mapping[str, Code], gpu: Gpu) -> KernelEstimate:
    """The predicted time of a group's launches, without fixes."""
    code = codes.get(group.entry)
    unknown = KernelEstimate(group.kernel[:900], group.launches, 0.0, "", 0.0, "", 0, 0.0, ())
    if code is None:
        return replace(unknown, why="there is no machine code of this kernel")
    names = {i.name for block in code.kernel.blocks for i in block.instructions}
    if lacking := names.intersection(_NOT_MODELLED):
        return replace(unknown, why=f"the model lacks {', '.join(sorted(lacking))}")
    time = kernel_time(group, code, gpu)
    why = f"{time.misfit:.0%} of its counts do not fit the machine code" if time.misfit > _MISFIT else ""
    access = next((a for (line, _), a in group.accesses.items() if line == time.line), None)
    limits = known_limits(gpu.capability)
    assert limits is not None
    occupancy = min(1.0, time.resident * group.warps * 32 / limits.threads)
    file, line = (access.file, access.line) if access else ("", 0)
    return replace(
        unknown, ms=time.ms, limit=time.limit, busy=time.busy, file=file[:900], line=line, occupancy=occupancy, why=why
    )


def unpredictable(kernels: Sequence[KernelEstimate]) -> str:
    """Why the program cannot be predicted; '' if it can: a kernel that takes hardly any time may be wrong."""
    total = sum(kernel.ms for kernel in kernels)
    lacking = [kernel for kernel in kernels if kernel.why and (not kernel.ms or kernel.ms > LEAST_GAIN * total)]
    return f"{lacking[0].name}: {lacking[0].why}" if lacking else ""


def _fixes(group: Group, code: Code, gpu: Gpu, ms: float, least_ms: float) -> Iterator[Fix]:
    """What would save at least `least_ms`, the most first."""
    found = []
    for space, what in (
        ("shared", "shared-memory bank conflicts"),
        ("global", "loads and stores that are not coalesced"),
        ("local", "local memory"),
    ):
        lines: dict[tuple[str, int], float] = {}
        for access in group.accesses.values():
            if access.space == space:
                lost = access.units if space == "local" else access.excess
                lines[access.file, access.line] = lines.get((access.file, access.line), 0.0) + lost
        for (file, line), lost in sorted(lines.items(), key=lambda item: -item[1])[:_MOST_LINES]:
            if lost > 0:
                mended = replace(group, local_bytes=0) if space == "local" else group
                without = kernel_time(mended, code, gpu, change=_mended(space, file, line)).ms
                found.append(Fix(what, file[:900], line, without))
            if space == "local":  # it is mended as a whole
                break
    held = resident_blocks(group, code.registers, gpu)
    limits = known_limits(gpu.capability)
    assert limits is not None
    if 2 * held * group.warps * 32 <= limits.threads and group.blocks / group.launches >= 2 * held * gpu.sms:
        found.append(
            Fix("low occupancy (twice the blocks on an SM)", "", 0, kernel_time(group, code, gpu, resident=2 * held).ms)
        )
    if group.warps > 1 and any(i.name == "BAR" for block in code.kernel.blocks for i in block.instructions):
        found.append(Fix("waiting at barriers", "", 0, kernel_time(group, code, gpu, barriers=False).ms))
    if group.launches > 1:
        found.append(Fix("so many launches (one instead)", "", 0, ms - (group.launches - 1) * LAUNCH_MS))
    yield from sorted((fix for fix in found if ms - fix.without_ms >= least_ms), key=lambda fix: fix.without_ms)


def _mended(space: str, file: str, line: int) -> Change:
    def change(moved: Traffic, access: Access) -> Traffic:
        if access.space != space or (space != "local" and (access.file, access.line) != (file, line)):
            return moved
        needed = (access.units - access.excess) / max(1.0, access.requests)
        if space == "shared":
            return replace(moved, wavefronts=needed)
        if space == "local":
            return replace(moved, sectors=0.0, lines=0.0, returned=0.0, missed=0.0)
        return replace(moved, sectors=needed, lines=needed / 4)

    return change


# ---- intervals ------------------------------------------------------------------------------------------------------


@cache
def _calibration() -> dict[str, list[float]]:
    found: dict[str, list[float]] = json.loads(Path(__file__).with_name("calibration.json").read_text())
    return found


@dataclass(frozen=True)
class Interval:
    """A predicted time, and the interval that holds the measured one in 80 % of programs like those measured here."""

    ms: float
    low_ms: float
    high_ms: float
    uncalibrated_ms: float = 0.0


def interval(kernels: Sequence[KernelEstimate], gpu: Gpu, more_ms: float = 0.0) -> Interval:
    """The time of the kernels and of `more_ms` of fills. On a GPU that nobody calibrated here, the interval is as wide
    again."""
    total = sum(kernel.ms for kernel in kernels) + more_ms
    low, middle, high = (
        sum(kernel.ms * math.log(quantiles_of(kernel.limit)[i]) for kernel in kernels) / max(total, 1e-12)
        for i in range(3)
    )
    wide = 1.0 if gpu.calibrated else 2.0
    best = total * math.exp(middle)
    return Interval(best, best * math.exp(wide * (low - middle)), best * math.exp(wide * (high - middle)), total)


def quantiles_of(limit: str) -> list[float]:
    """The 7.5 %, 50 % and 92.5 % quantiles of measured over predicted time, of kernels with this limit."""
    return _calibration().get(limit) or _calibration()["any"]
