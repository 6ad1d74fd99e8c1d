"""The roofline model: how much arithmetic a device can do for every byte that it moves (Williams, Waterman and
Patterson, Communications of the ACM 52(4), 2009).

A kernel that does I floating-point operations per byte of device memory traffic reaches at most min(peak, I ×
bandwidth). On a submission's page, I is a testcase's operations divided by its least possible traffic, both from the
record.
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
    """A limit on arithmetic: the unit `name` does at most `flops` operations per second."""

    name: str
    flops: float


@dataclass(frozen=True)
class Mark:
    """An achieved rate: `tflops` (10^12 per second) at `intensity` (operations per byte). `limit_tflops` is the highest
    rate that all floors of the testcase allow, including that of the exponentials; None if unknown."""

    name: str
    intensity: float
    tflops: float
    limit_tflops: float | None = None


@dataclass(frozen=True)
class Roofline:
    """A device's limits and the rates achieved under them. `bandwidth` is in bytes per second."""

    roofs: tuple[Roof, ...]
    bandwidth: float
    marks: tuple[Mark, ...]

    def attainable(self, roof: Roof, intensity: float) -> float:
        """The FLOP/s that `roof` and the memory allow at an intensity."""
        return min(roof.flops, intensity * self.bandwidth)

    def line(self, roof: Roof) -> tuple[tuple[float, float], ...]:
        """The corners of a roof over `span`, in FLOP per byte and TFLOP/s."""
        low, high = self.span
        corners = (low, min(max(roof.flops / self.bandwidth, low), high), high)
        return tuple((corner, self.attainable(roof, corner) / 1e12) for corner in corners)

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and highest intensity to draw, around all marks and the ridges of all roofs."""
        seen = [mark.intensity for mark in self.marks] + [roof.flops / self.bandwidth for roof in self.roofs]
        return min(seen) / 4, max(seen) * 4


def roofline_of(record: Record) -> Roofline | None:
    """The roofline of a graded submission; None if nothing was timed on a GPU whose limits are known.

    A record does not contain the device's rates, but they follow from each floor's terms. A term's time is the time
    that the same work takes at the device's full rate. So the full rate is the achieved rate, times the measured time
    divided by the term's time. The arithmetic term is that of the fastest unit that the assignment allows; from this
    unit's rate and the architecture follows the rate of FP32.
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
    """Add the roof of plain FP32 arithmetic below that of the fastest unit, if the architecture's rates are known."""
    capability = re.fullmatch(r"(\d+)\.(\d+)", record.engine.facts.get("compute_capability", ""))
    if fastest.name == "fp32" or fastest.name not in get_args(Unit) or capability is None:
        return (fastest,)
    known = int(capability[1]), int(capability[2])
    plain, fast = fma_per_clock(known, "fp32"), fma_per_clock(known, cast(Unit, fastest.name))
    if plain is None or fast is None:
        return (fastest,)
    return Roof("fp32", fastest.flops * plain / fast), fastest
