"""The roofline model: how much arithmetic a device can do for every byte that it moves (Williams, Waterman and
Patterson, Communications of the ACM 52(4), 2009).

A kernel that does I floating-point operations per byte of device memory reaches at most min(peak, I × bandwidth). A
submission's page places testcases by the least traffic there can be, from the record alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast, get_args

from grader.base.verdict import Verdict
from grader.course.assignment import Unit
from grader.records import measured_times as timing
from grader.records.record import Record
from grader.timing.floors import ARITHMETIC, MEMORY, fma_per_clock


@dataclass(frozen=True)
class Roof:
    """A limit on arithmetic: `flops` per second, by the unit `name`."""

    name: str
    flops: float


@dataclass(frozen=True)
class Mark:
    """What was achieved: `tflops` (10^12 a second) at `intensity` (operations per byte). `limit_tflops` is the most
    that all the floors of its testcase allow, the exponentials' among them; None where that is not known."""

    name: str
    intensity: float
    tflops: float
    limit_tflops: float | None = None


@dataclass(frozen=True)
class Roofline:
    """A device's limits and what was achieved under them. `bandwidth` is in bytes per second."""

    roofs: tuple[Roof, ...]
    bandwidth: float
    marks: tuple[Mark, ...]

    def attainable(self, roof: Roof, intensity: float) -> float:
        """FLOP/s that `roof` and the memory allow at an intensity."""
        return min(roof.flops, intensity * self.bandwidth)

    def line(self, roof: Roof) -> tuple[tuple[float, float], ...]:
        """The corners of a roof over `span`, in FLOP per byte and TFLOP/s."""
        low, high = self.span
        corners = (low, min(max(roof.flops / self.bandwidth, low), high), high)
        return tuple((corner, self.attainable(roof, corner) / 1e12) for corner in corners)

    @property
    def span(self) -> tuple[float, float]:
        """Intensities around every mark and the ridge of every roof."""
        seen = [mark.intensity for mark in self.marks] + [roof.flops / self.bandwidth for roof in self.roofs]
        return min(seen) / 4, max(seen) * 4


def roofline_of(record: Record) -> Roofline | None:
    """The roofline of a graded submission; None where nothing was timed on a GPU whose limits are known.

    A record has no rates of the device, but each floor's terms are the same work over them: what was achieved times
    the measured time over a term's time is that term's rate. The first term is the arithmetic of the fastest unit that
    the assignment allows; FP32's rate follows from it by the architecture.
    """
    marks, peaks, bandwidths = [], [], []
    for test in record.tests:
        floor = test.floor
        if floor is None or not (floor.share and floor.tflops and floor.gbytes_per_s):
            continue
        if timing.refused(test) or test.verdict is not Verdict.PASSED:
            continue
        terms = {term.name: term for term in floor.terms}
        arithmetic, memory = terms.get(ARITHMETIC), terms.get(MEMORY)
        if arithmetic is None or memory is None or not arithmetic.ms or not memory.ms:
            continue
        gpu_ms = floor.ms / floor.share
        peaks.append((floor.tflops * 1e12 * gpu_ms / arithmetic.ms, arithmetic.source.partition(":")[0]))
        bandwidths.append(floor.gbytes_per_s * 1e9 * gpu_ms / memory.ms)
        intensity = floor.tflops * 1e3 / floor.gbytes_per_s
        marks.append(Mark(test.name, intensity, floor.tflops, floor.tflops / floor.share))
    if not marks:
        return None
    flops, unit = max(peaks)
    return Roofline(_with_fp32(Roof(unit, flops), record), max(bandwidths), tuple(marks))


def _with_fp32(fastest: Roof, record: Record) -> tuple[Roof, ...]:
    """The roof of plain FP32 arithmetic below that of the fastest unit, where the architecture's rates are known."""
    capability = re.fullmatch(r"(\d+)\.(\d+)", record.engine.facts.get("compute_capability", ""))
    if fastest.name == "fp32" or fastest.name not in get_args(Unit) or capability is None:
        return (fastest,)
    known = int(capability[1]), int(capability[2])
    plain, fast = fma_per_clock(known, "fp32"), fma_per_clock(known, cast(Unit, fastest.name))
    if plain is None or fast is None:
        return (fastest,)
    return Roof("fp32", fastest.flops * plain / fast), fastest
